use std::cmp::Ordering;

/// The numbers of rows in an order, of which each can be found by its place. Equal rows are in the order of their numbers.
///
/// The rows are in chunks of bounded length, so that adding and removing one moves few others.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    chunks: Vec<Vec<usize>>,
    len: usize,
}

/// Most rows in a chunk: 4 KiB are moved as fast as a chunk is found.
const LONGEST_CHUNK: usize = 512;

impl Ranked {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a row, and returns the one before it in the order.
    pub(super) fn insert(&mut self, row: usize, order: impl Fn(usize, usize) -> Ordering) -> Option<usize> {
        let order = |a: usize, b: usize| order(a, b).then(a.cmp(&b));
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let is_before = |chunk: &Vec<usize>| chunk.last().is_some_and(|last| order(*last, row).is_lt());
        let at = self.chunks.partition_point(is_before).min(self.chunks.len() - 1);
        let chunk = self.chunks.get_mut(at)?;
        let place = chunk.partition_point(|other| order(*other, row).is_lt());
        chunk.insert(place, row);
        self.len += 1;
        let before = match place.checked_sub(1) {
            Some(before) => chunk.get(before).copied(),
            None => at.checked_sub(1).and_then(|at| self.chunks.get(at)?.last().copied()),
        };
        self.split(at);
        before
    }

    fn split(&mut self, at: usize) {
        let long = self.chunks.get_mut(at).filter(|chunk| chunk.len() > LONGEST_CHUNK);
        if let Some(half) = long.map(|chunk| chunk.split_off(LONGEST_CHUNK / 2)) {
            self.chunks.insert(at + 1, half);
        }
    }

    /// Removes a row, and returns the one after it in the order.
    pub(super) fn remove(&mut self, row: usize, order: impl Fn(usize, usize) -> Ordering) -> Option<usize> {
        let order = |a: usize, b: usize| order(a, b).then(a.cmp(&b));
        let at = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| order(*last, row).is_lt()));
        let chunk = self.chunks.get_mut(at)?;
        let place = chunk.binary_search_by(|other| order(*other, row)).ok()?;
        chunk.remove(place);
        self.len -= 1;
        let (after, is_empty) = (chunk.get(place).copied(), chunk.is_empty());
        let after = after.or_else(|| self.chunks.get(at + 1)?.first().copied());
        if is_empty {
            self.chunks.remove(at);
        }
        after
    }

    /// Returns the row at a place, from 0.
    pub(super) fn get(&self, mut place: usize) -> Option<usize> {
        for chunk in &self.chunks {
            if let Some(row) = chunk.get(place) {
                return Some(*row);
            }
            place -= chunk.len();
        }
        None
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.chunks.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_while_others_are_added_and_removed() {
        let value = |row: usize| row * 7_919 % 1_013 / 3;
        let order = |a: usize, b: usize| value(a).cmp(&value(b));
        let mut ranked = Ranked::default();
        let mut expected: Vec<usize> = Vec::new();
        for row in 0..6_000 {
            let key = |row: &usize| (value(*row), *row);
            let place = expected.partition_point(|other| key(other) < key(&row));
            assert_eq!(ranked.insert(row, order), place.checked_sub(1).map(|before| expected[before]));
            expected.insert(place, row);
            if let Some(left) = row.checked_sub(2_000) {
                let place = expected.iter().position(|other| *other == left).unwrap();
                expected.remove(place);
                assert_eq!(ranked.remove(left, order), expected.get(place).copied());
            }
            if row % 100 == 0 {
                assert_eq!(ranked.iter().collect::<Vec<_>>(), expected);
                assert!((0..=expected.len()).all(|place| ranked.get(place) == expected.get(place).copied()));
            }
        }
        assert!(ranked.chunks.len() > 3 && ranked.chunks.iter().all(|chunk| chunk.len() <= LONGEST_CHUNK));
        for row in 4_000..6_000 {
            ranked.remove(row, order);
        }
        assert_eq!((ranked.len(), ranked.chunks.len()), (0, 0));
    }
}
