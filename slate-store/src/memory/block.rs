//! What leaves and branches have in common: items in the order of their keys.

use std::cmp::Ordering;

use equivalent::Comparable;

use super::key::{Key, Sought};

/// The room that a full block is given for more, in items.
pub(super) const SPARE: usize = 4;

/// Where the key stands, or would.
#[inline]
pub(super) fn find<T>(items: &[(Key, T)], key: &Sought<'_>) -> Result<usize, usize> {
    let (mut start, mut end) = (0, items.len());
    // By hand: the library's search does not stop where it has found the key, and does not take the comparison in.
    while start < end {
        let middle = start.midpoint(end);
        let Some((stands, _)) = items.get(middle) else { break };
        match key.compare(stands) {
            Ordering::Less => end = middle,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => start = middle + 1,
        }
    }
    Err(start)
}

/// The same where the key is probably one of the first.
#[inline]
pub(super) fn find_near<T>(items: &[(Key, T)], key: &Sought<'_>) -> Result<usize, usize> {
    const NEAR: usize = 4;
    for (at, (stands, _)) in items.iter().take(NEAR).enumerate() {
        match key.compare(stands) {
            Ordering::Less => return Err(at),
            Ordering::Equal => return Ok(at),
            Ordering::Greater => {}
        }
    }
    let near = items.len().min(NEAR);
    find(items.get(near..).unwrap_or_default(), key).map(|at| at + near).map_err(|at| at + near)
}

pub(super) fn insert<T>(items: &mut Vec<(Key, T)>, at: usize, item: (Key, T)) {
    if items.len() == items.capacity() {
        items.reserve_exact(SPARE);
    }
    items.insert(at, item);
}

/// How items are shared out where they are too many for one block.
#[derive(Clone, Copy)]
pub(super) enum Fill {
    /// All blocks but the last are full: keys come in ascending order, and none will come between.
    All,
    Evenly,
}

/// Leaves `items` no more than `most`. What comes after those, in order, each part with its first key.
pub(super) fn share_out<T>(items: &mut Vec<(Key, T)>, most: usize, fill: Fill) -> Vec<(Key, Vec<(Key, T)>)> {
    let parts = items.len().div_ceil(most);
    if parts <= 1 {
        return Vec::new();
    }
    let each = match fill {
        Fill::All => most,
        Fill::Evenly => items.len().div_ceil(parts),
    };
    let mut shared_out = Vec::with_capacity(parts);
    while items.len() > each {
        let at = (items.len() - 1) / each * each;
        let part = match fill {
            Fill::All => items.split_off(at),
            Fill::Evenly => {
                let mut part = Vec::with_capacity(items.len() - at + SPARE);
                part.extend(items.drain(at..));
                part
            }
        };
        shared_out.extend(part.first().map(|(first, _)| first.clone()).map(|first| (first, part)));
    }
    shared_out.reverse();
    items.shrink_to(each + SPARE);
    shared_out
}
