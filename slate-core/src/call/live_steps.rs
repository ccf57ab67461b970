//! The steps from one result of a live query to the next.
//!
//! Of the rows in both results, as many as possible stay where they are: a longest sequence in the same order. Each other one moves once. The new
//! result is built from its first row to its last:
//!
//! ```text
//! before       A B C D        after    C A N D
//! removed      A   C D        B, the last one first
//! stay         A     D        the longest ascent of the old positions, in the new order: C A D is 1 0 2
//! step by step C A D          C moves before A
//!              C A N D        N is added behind A
//! ```
//!
//! The position in a step is the number of rows before it after the previous steps. To count them, each row has a slot: at first its own old position
//! among the rows in both results; once it is at its new position, the slot of the last staying row before it. A tree of sums makes a step
//! logarithmic.

use std::{collections::VecDeque, sync::Arc};

use ahash::AHashMap;
use slate_query::work;

use super::{live::Row, live_change::LiveStep};
use crate::Result;

/// The units of work (`work::take`) that a row costs in lists of up to millions of rows.
const WORK: usize = 16;

/// Returns the steps from the rows `before` to the rows `after`.
///
/// # Errors
/// The error of the call if its limits end it.
pub(super) fn steps_between(before: &[Row], after: &[Row]) -> Result<VecDeque<LiveStep>> {
    let (positions, mut steps) = (positions(after.iter())?, VecDeque::new());
    let mut common: Vec<&Row> = Vec::new();
    for (position, row) in before.iter().enumerate().rev() {
        work::take(1)?;
        if positions.contains_key(row.id.as_slice()) {
            common.push(row);
        } else {
            steps.push_back(LiveStep::Removed { position });
        }
    }
    common.reverse();
    let slots = self::positions(common.iter().copied())?;
    let order: Vec<usize> = after.iter().filter_map(|row| slots.get(row.id.as_slice()).copied()).collect();
    let stays = longest_ascent(&order)?;
    // Slot 0 is for rows before the first staying row.
    let (mut rows, mut last_staying) = (SlotCounts::new(common.len()), 0);
    for row in after {
        work::take(WORK)?;
        let document = &row.document;
        let Some(&old) = slots.get(row.id.as_slice()) else {
            let position = rows.through(last_staying);
            steps.push_back(LiveStep::Added { position, document: Arc::clone(document) });
            rows.add(last_staying);
            continue;
        };
        let slot = old + 1;
        if stays.get(old) == Some(&true) {
            last_staying = slot;
            if common
                .get(old)
                .is_some_and(|there| !Arc::ptr_eq(&there.document, document) && there.document != *document)
            {
                let position = rows.through(old);
                steps.push_back(LiveStep::Changed { position, document: Arc::clone(document) });
            }
            continue;
        }
        let from = rows.through(old);
        rows.remove(slot);
        let to = rows.through(last_staying);
        rows.add(last_staying);
        steps.push_back(LiveStep::Moved { from, to, document: Arc::clone(document) });
    }
    Ok(steps)
}

/// Returns the positions of rows by their ids.
fn positions<'r>(rows: impl Iterator<Item = &'r Row>) -> Result<AHashMap<&'r [u8], usize>> {
    let counted = rows.enumerate().map(|(position, row)| {
        work::take(WORK / 4)?;
        Ok((row.id.as_slice(), position))
    });
    counted.collect()
}

/// Returns for each number whether it is in a longest ascending subsequence of `order`, which contains each number below its length once.
///
/// Each number extends the longest ascent that ends in a smaller one (Fredman, On computing the length of longest increasing
/// subsequences, 1975).
fn longest_ascent(order: &[usize]) -> Result<Vec<bool>> {
    // For each length: the smallest number that ends an ascent of this length. For each number: its predecessor in its ascent.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; order.len()]);
    for number in order {
        work::take(WORK)?;
        let length = match ends.last() {
            Some(end) if end > number => ends.partition_point(|end| end < number),
            _ => ends.len(),
        };
        if let Some(before) = before.get_mut(*number) {
            *before = length.checked_sub(1).and_then(|shorter| ends.get(shorter).copied());
        }
        match ends.get_mut(length) {
            Some(end) => *end = *number,
            None => ends.push(*number),
        }
    }
    let (mut is_in, mut number) = (vec![false; order.len()], ends.last().copied());
    while let Some(at) = number {
        if let Some(is_in) = is_in.get_mut(at) {
            *is_in = true;
        }
        number = before.get(at).copied().flatten();
    }
    Ok(is_in)
}

/// How many rows have each slot: sums of ranges of slots (Fenwick, A new data structure for cumulative frequency tables, 1994).
struct SlotCounts {
    /// Position `n` has the sum of the slots from `n & (n + 1)` to `n`.
    sums: Vec<usize>,
}

impl SlotCounts {
    /// Gives each slot from 1 to `rows` one row, and slot 0 none.
    fn new(rows: usize) -> Self {
        let sums = (0..=rows).map(|slot| slot + 1 - (slot & (slot + 1)) - usize::from(slot & (slot + 1) == 0));
        Self { sums: sums.collect() }
    }

    /// Returns the number of rows in the slots up to this one, inclusive.
    fn through(&self, slot: usize) -> usize {
        let mut next = Some(slot);
        let mut sum = 0;
        while let Some(slot) = next {
            sum += self.sums.get(slot).copied().unwrap_or_default();
            next = (slot & (slot + 1)).checked_sub(1);
        }
        sum
    }

    fn add(&mut self, slot: usize) {
        self.change(slot, |sum| sum + 1);
    }

    fn remove(&mut self, slot: usize) {
        self.change(slot, |sum| sum - 1);
    }

    fn change(&mut self, mut slot: usize, changed: impl Fn(usize) -> usize) {
        while let Some(sum) = self.sums.get_mut(slot) {
            *sum = changed(*sum);
            slot |= slot + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};

    use super::*;
    use crate::interrupt::looks;

    fn row(id: i32, version: i32) -> Row {
        let key = id.to_be_bytes();
        let document = Arc::new(rawdoc! { "_id": id, "version": version });
        Row { order: key.as_slice().into(), id: key.as_slice().into(), document }
    }

    /// Applies the steps to the documents of the rows.
    fn applied(before: &[Row], steps: &VecDeque<LiveStep>) -> Vec<Arc<RawDocumentBuf>> {
        let mut documents: Vec<_> = before.iter().map(|row| row.document.clone()).collect();
        for step in steps {
            match step.clone() {
                LiveStep::Added { position, document } => documents.insert(position, document),
                LiveStep::Changed { position, document } => documents[position] = document,
                LiveStep::Moved { from, to, document } => {
                    assert_ne!(from, to);
                    documents.remove(from);
                    documents.insert(to, document);
                }
                LiveStep::Removed { position } => drop(documents.remove(position)),
            }
        }
        documents
    }

    /// Draws different ids in any order.
    fn drawn(seed: &mut u64) -> Vec<Row> {
        let mut random = |below: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed >> 33) % below
        };
        let mut ids: Vec<i32> = (0..12).filter(|_| random(3) > 0).collect();
        for at in 0..ids.len() {
            if random(2) == 0 {
                let other = usize::try_from(random(ids.len() as u64)).unwrap();
                ids.swap(at, other);
            }
        }
        ids.into_iter().map(|id| row(id, i32::from(random(4) == 0))).collect()
    }

    #[test]
    fn the_steps_make_the_second_list_of_the_first() {
        let mut seed = 1;
        for _ in 0..3_000 {
            let (before, after) = (drawn(&mut seed), drawn(&mut seed));
            let steps = steps_between(&before, &after).unwrap();
            let expected: Vec<_> = after.iter().map(|row| row.document.clone()).collect();
            assert_eq!(applied(&before, &steps), expected, "{steps:?}");
            let moved = steps.iter().filter(|step| matches!(step, LiveStep::Moved { .. })).count();
            assert_eq!(moved, fewest_moves(&before, &after), "{steps:?}");
        }
    }

    /// The common rows without a longest ascent, whose length is found by comparing each with all before it.
    fn fewest_moves(before: &[Row], after: &[Row]) -> usize {
        let position = |row: &Row| before.iter().position(|other| other.id == row.id);
        let order: Vec<usize> = after.iter().filter_map(position).collect();
        let mut lengths: Vec<usize> = Vec::new();
        for (at, number) in order.iter().enumerate() {
            let smaller = (0..at).filter(|other| order[*other] < *number).map(|other| lengths[other]);
            lengths.push(smaller.max().unwrap_or_default() + 1);
        }
        order.len() - lengths.into_iter().max().unwrap_or_default()
    }

    #[test]
    fn one_row_that_moves_is_one_step() {
        let before: Vec<Row> = (0..50).map(|id| row(id, 0)).collect();
        for (from, to) in [(0, 49), (49, 0), (10, 20), (20, 10)] {
            let mut after = before.clone();
            let moved = after.remove(from);
            after.insert(to, moved);
            let steps = steps_between(&before, &after).unwrap();
            assert!(steps.len() == 1 && matches!(steps[0], LiveStep::Moved { .. }), "{steps:?}");
        }
        assert!(steps_between(&before, &before).unwrap().is_empty());
    }

    #[test]
    fn the_work_grows_with_the_number_of_rows_and_ends_with_the_call() {
        let looks = |rows: i32| {
            let before: Vec<Row> = (0..rows).map(|id| row(id, 0)).collect();
            let reversed: Vec<Row> = before.iter().rev().cloned().collect();
            let half: Vec<Row> = before.iter().step_by(2).cloned().collect();
            let mut looks = 0;
            for after in [&reversed, &half] {
                looks += looks::of(|| steps_between(&before, after));
                looks::end_after(1, || steps_between(&before, after));
            }
            looks
        };
        let (few, many) = (looks(20_000), looks(80_000));
        assert!(few > 10 && many < 5 * few, "{few} and {many} looks");
    }
}
