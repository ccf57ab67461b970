use crate::{Cursor, Edge, Result};

/// About so many keys make a stretch: to count them again takes some 50 us, and to note them a thousandth of what they take.
pub(super) const STRETCH: u64 = if cfg!(test) { 8 } else { 1_024 };

/// What was found by going through a range.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    pub(super) keys: u64,
    /// Where the range is cut into stretches, ascending.
    pub(super) cuts: Vec<Cut>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// How many keys of the range lie below.
    pub(super) below: u64,
    /// The first key that does not.
    pub(super) at: Box<[u8]>,
}

/// Goes through a cursor's range, for as long as `go_on` says so before each step, and cuts it into stretches, whose keys take
/// no more than `room` bytes.
pub(super) fn walk(cursor: &mut impl Cursor, room: usize, mut go_on: impl FnMut() -> bool) -> Result<Option<Walked>> {
    let mut walked = Walked::default();
    let (mut apart, mut taken) = (STRETCH, 0);
    let mut next = apart;
    let mut more = cursor.seek(Edge::First)?;
    while more {
        if !go_on() {
            return Ok(None);
        }
        if walked.keys == next {
            let at = cursor.current().map(|(key, _)| Box::from(key)).unwrap_or_default();
            taken += bytes(&at);
            walked.cuts.push(Cut { below: walked.keys, at });
            if taken > room {
                // Every second one is kept.
                apart = apart.saturating_mul(2);
                walked.cuts.retain(|cut| cut.below.is_multiple_of(apart));
                taken = walked.cuts.iter().map(|cut| bytes(&cut.at)).sum();
            }
            next = (walked.keys / apart + 1).saturating_mul(apart);
        }
        walked.keys += 1;
        more = cursor.step_forward()?;
    }
    // The last stretch has half as many at least.
    if walked.cuts.last().is_some_and(|cut| walked.keys - cut.below < apart / 2) {
        walked.cuts.pop();
    }
    Ok(Some(walked))
}

/// About what a stretch takes that begins with a key: besides it, two places in tables and an allocation.
pub(super) fn bytes(key: &[u8]) -> usize {
    key.len() + 64
}
