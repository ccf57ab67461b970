//! Sorts that the end of a call interrupts.

use std::cmp::Ordering;

use slate_query::work;

use crate::Result;

/// Maximum number of values that are sorted without checking whether the call has ended: a few tens of milliseconds.
pub(super) const SORTED_AT_ONCE: usize = 1 << 17;

/// Number of values after which a loop counts its work.
const COUNTED: usize = 1 << 12;

/// The steps of [`work`] for each value of a loop that reads its row, which is often not in the processor's cache.
const STEPS: usize = 4;

/// Counts the work of a loop over many rows; called with the position of each row. Counts [`COUNTED`] rows together: fewer at the
/// end of the loop are not counted.
#[inline]
pub(super) fn count_row(position: usize) -> Result<()> {
    if position % COUNTED == COUNTED - 1 {
        work::take(COUNTED * STEPS)?;
    }
    Ok(())
}

/// Sorts stably. Long lists are merged from sorted runs; `buffer` is then used as scratch space for as many values.
///
/// # Errors
/// The error of the call that ended; the order is then any, and values can be missing.
pub(crate) fn sort_counted<T: Copy>(
    values: &mut [T],
    buffer: &mut Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    sort_in_runs(values, SORTED_AT_ONCE, buffer, compare)
}

/// Like [`sort_counted`], with at most `most` values in a run, for comparisons that take long.
pub(super) fn sort_in_runs<T: Copy>(
    values: &mut [T],
    most: usize,
    buffer: &mut Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    for run in values.chunks_mut(most) {
        work::take(run.len())?;
        run.sort_by(&compare);
    }
    let mut length = most;
    while length < values.len() {
        buffer.clear();
        buffer.reserve_exact(values.len());
        for runs in values.chunks(length.saturating_mul(2)) {
            let (left, right) = runs.split_at(length.min(runs.len()));
            merge(left, right, buffer, &compare)?;
        }
        values.copy_from_slice(buffer);
        length = length.saturating_mul(2);
    }
    Ok(())
}

/// Appends the values of two sorted lists in their order, of equal values those of `left` first.
fn merge<'v, T: Copy>(
    mut left: &'v [T],
    mut right: &'v [T],
    merged: &mut Vec<T>,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    let follows = |left: &[T], right: &[T]| match (left.last(), right.first()) {
        (Some(last), Some(first)) => compare(last, first),
        _ => Ordering::Less,
    };
    if follows(right, left).is_lt() {
        (left, right) = (right, left);
    } else if follows(left, right).is_gt() {
        while let (Some((first, others)), Some((second, rest))) = (left.split_first(), right.split_first()) {
            count_row(merged.len())?;
            if compare(second, first).is_lt() {
                merged.push(*second);
                right = rest;
            } else {
                merged.push(*first);
                left = others;
            }
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::looks;

    fn random(at: usize) -> usize {
        at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
    }

    #[test]
    fn long_lists_are_sorted_stably() {
        let length = 3 * SORTED_AT_ONCE + 5;
        let orders: [fn(usize) -> usize; 4] = [|at| random(at) % 1000, |at| at, |at| usize::MAX - at, |_| 1];
        for of in orders {
            let mut values: Vec<(usize, usize)> = (0..length).map(|at| (of(at), at)).collect();
            let mut expected = values.clone();
            expected.sort_unstable();
            sort_counted(&mut values, &mut Vec::new(), |(a, _), (b, _)| a.cmp(b)).unwrap();
            assert!(values == expected);
        }
    }

    #[test]
    fn runs_and_merges_end_with_the_call() {
        let mut values: Vec<usize> = (0..4 * SORTED_AT_ONCE).map(random).collect();
        // One look for each run, and then those of the merges.
        for number in [0, 2, 6] {
            looks::end_after(number, || sort_counted(&mut values.clone(), &mut Vec::new(), usize::cmp));
        }
        sort_counted(&mut values, &mut Vec::new(), usize::cmp).unwrap();
        assert!(values.is_sorted());
    }
}
