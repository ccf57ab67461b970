use std::ops::Range;

/// A list whose first items can be released. The others keep their numbers.
#[derive(Debug)]
pub(super) struct Column<T> {
    /// The number of the first item that was not released.
    first: usize,
    items: Vec<T>,
}

/// Minimum number of items that are released at once: for fewer, moving the remaining items costs more than holding them.
const FEWEST_RELEASED: usize = 32;

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { first: 0, items: Vec::new() }
    }
}

impl<T> Column<T> {
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Returns the number of items so far, including the released ones.
    pub(super) fn len(&self) -> usize {
        self.first + self.items.len()
    }

    /// Returns the item with this number, unless it was released.
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.items.get(number.checked_sub(self.first)?)
    }

    /// Returns the items with these numbers; none if one of them was released or does not exist.
    pub(super) fn range(&self, numbers: Range<usize>) -> &[T] {
        let start = numbers.start.checked_sub(self.first);
        start.and_then(|start| self.items.get(start..numbers.end.checked_sub(self.first)?)).unwrap_or_default()
    }

    /// Releases items before this number once they are half of those that are held, so that an item is moved once on average.
    /// Calls `released` with each.
    pub(super) fn release(&mut self, before: usize, released: impl FnMut(T)) {
        let count = before.saturating_sub(self.first).min(self.items.len());
        if count >= FEWEST_RELEASED && count >= self.items.len() / 2 {
            self.items.drain(..count).for_each(released);
            self.first += count;
        }
    }

    pub(super) fn clear(&mut self) {
        self.first = 0;
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_numbers_when_those_before_them_are_released() {
        let mut column = Column::default();
        let mut released = Vec::new();
        for number in 0..1_000_usize {
            column.push(number);
            let first = number.saturating_sub(10);
            column.release(first, |item| released.push(item));
            assert_eq!(column.len(), number + 1);
            assert_eq!(column.range(first..number + 1), (first..=number).collect::<Vec<_>>());
            assert_eq!(column.get(number), Some(&number));
            assert!(column.items.len() <= 10 + 2 * FEWEST_RELEASED, "{}", column.items.len());
        }
        assert!(released.iter().copied().eq(0..released.len()) && released.len() > 900);
        assert_eq!((column.get(0), column.range(0..1_000)), (None, &[][..]));
    }
}
