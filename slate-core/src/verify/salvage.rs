use std::ops::ControlFlow;

use slate_query::raw::{Doc, validate};
use slate_store::{Bounds, Damage, View};

use super::{
    VerifyFindingKind,
    run::{VerifyRun, hex},
    storage::unreadable,
};
use crate::{ErrorKind, Result, catalog::CollectionInfo, entry::record_key};

/// The keys between damaged parts: from `start` on, and below `end`. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Intact {
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

/// Calls `visitor` with each document of a collection that is not in a damaged part, is valid and is stored under its own key. Adds what
/// is left out to the report, except for the damaged parts, which [`verify_storage`](super::verify_storage) has added.
pub(crate) fn salvage<V: View>(
    view: &V,
    collection: &CollectionInfo,
    damages: &[Damage],
    run: &mut VerifyRun<'_>,
    visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>,
) -> Result<()> {
    let of_records = damages.iter().filter(|damage| damage.keyspace == Some(collection.records));
    for Intact { start, end } in intact(of_records) {
        let bounds = Bounds { start: start.as_deref(), end: end.as_deref() };
        let scanned = view.scan(collection.records, bounds, |key, stored| {
            let read = run.interrupt.tick().and_then(|()| {
                match validate(Doc::stored(stored).bytes()) {
                    Ok(document) if document.get("_id").and_then(|id| record_key(id).ok()).as_deref() == Some(key) => {
                        return visitor(document);
                    }
                    Ok(_) => {
                        let message = format!("the record under the key {} has another _id", hex(key));
                        run.fault(VerifyFindingKind::MisplacedDocument, collection, None, message);
                    }
                    Err(error) => {
                        let message = format!("the record under the key {} is not a valid document: {error}", hex(key));
                        run.fault(VerifyFindingKind::InvalidDocument, collection, None, message);
                    }
                }
                Ok(())
            });
            read.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        });
        match scanned.map_err(crate::Error::from) {
            // Continues, because other parts may be sound.
            Err(error) if error.kind() == ErrorKind::Corrupt => run.found(unreadable(&collection.name, &error)),
            scanned => scanned?.map_or(Ok(()), Err)?,
        }
    }
    Ok(())
}

/// Returns the parts between damaged ones, in order.
fn intact<'d>(damages: impl Iterator<Item = &'d Damage>) -> Vec<Intact> {
    let mut damaged: Vec<_> = damages.map(|damage| (damage.after.as_deref(), damage.up_to.as_deref())).collect();
    damaged.sort_unstable();
    let (mut parts, mut start) = (Vec::new(), None);
    for (after, up_to) in damaged {
        if let Some(after) = after {
            parts.push(Intact { start: start.take(), end: Some(successor(after)) });
        }
        match up_to {
            Some(up_to) => start = Some(successor(up_to)),
            None => return parts,
        }
    }
    parts.push(Intact { start, end: None });
    parts
}

/// Returns the least key above `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Key = Option<&'static [u8]>;

    fn part(start: Option<&[u8]>, end: Option<&[u8]>) -> Intact {
        Intact { start: start.map(<[u8]>::to_vec), end: end.map(<[u8]>::to_vec) }
    }

    #[test]
    fn parts_between_damages_are_intact() {
        let of = |damages: &[(Key, Key)]| {
            let boxed = |key: Option<&[u8]>| key.map(Into::into);
            let damages: Vec<_> = damages
                .iter()
                .map(|(after, up_to)| Damage {
                    keyspace: None,
                    after: boxed(*after),
                    up_to: boxed(*up_to),
                    detail: String::new(),
                })
                .collect();
            intact(damages.iter())
        };
        assert_eq!(of(&[]), [Intact::default()]);
        assert_eq!(of(&[(None, None)]), []);
        assert_eq!(of(&[(None, Some(b"b"))]), [part(Some(b"b\0"), None)]);
        assert_eq!(of(&[(Some(b"b"), None)]), [part(None, Some(b"b\0"))]);
        let two: [(Key, Key); 2] = [(Some(b"m"), Some(b"n")), (Some(b"a"), Some(b"b"))];
        assert_eq!(of(&two), [part(None, Some(b"a\0")), part(Some(b"b\0"), Some(b"m\0")), part(Some(b"n\0"), None)]);
    }
}
