use std::ops::ControlFlow;

use slate_store::{Checked, Damage};

use super::{
    VerifyFinding, VerifyFindingKind,
    run::{VerifyRun, hex},
};
use crate::{Error, Result, catalog::Catalog, error::ErrorPlace, write::key_place};

/// Runs the store's check: `check` calls the visitor that it receives. Adds the damage of `collection`, or of all collections if it is
/// `None`, and the damage that belongs to no collection to the report, and returns it.
pub(crate) fn verify_storage(
    catalog: &Catalog,
    collection: Option<&str>,
    run: &mut VerifyRun<'_>,
    check: impl FnOnce(&mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()>,
) -> Result<Vec<Damage>> {
    let (mut damages, mut interrupted) = (Vec::new(), None);
    check(&mut |checked| {
        if let Checked::Damaged(damage) = checked {
            let finding = finding(catalog, &damage);
            if collection.is_none_or(|name| finding.collection.is_empty() || finding.collection == name) {
                run.found(finding);
                damages.push(damage);
            }
        }
        match run.interrupt.tick() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                interrupted = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    interrupted.map_or(Ok(damages), Err)
}

/// The finding for a collection, or a part of it, that cannot be read.
pub(crate) fn unreadable(collection: &str, error: &Error) -> VerifyFinding {
    VerifyFinding {
        kind: VerifyFindingKind::DamagedStorage,
        collection: collection.to_owned(),
        index: None,
        message: format!("the check ended early: {error}"),
    }
}

fn finding(catalog: &Catalog, damage: &Damage) -> VerifyFinding {
    let Damage { keyspace, after, up_to, detail } = damage;
    let place = |key: &[u8]| keyspace.and_then(|keyspace| key_place(catalog, keyspace, key));
    let whole = place(&[]).unwrap_or_default();
    let name = |key: &[u8]| match place(key) {
        Some(ErrorPlace { key: Some(document), .. }) if !document.is_empty() => document.to_string(),
        _ => format!("the key {}", hex(key)),
    };
    let what = match (&whole.collection, &whole.index, keyspace) {
        (Some(_), Some(_), _) => "entries",
        (Some(_), None, _) => "documents",
        (None, _, Some(keyspace)) if *keyspace == crate::catalog::CATALOG => "definitions of collections",
        (None, _, Some(_)) => "keys of no collection",
        (None, _, None) => "the file",
    };
    let range = match (after, up_to) {
        (None, None) => String::new(),
        (Some(after), None) => format!(" after {}", name(after)),
        (None, Some(up_to)) => format!(" up to {}", name(up_to)),
        (Some(after), Some(up_to)) => format!(" after {} up to {}", name(after), name(up_to)),
    };
    VerifyFinding {
        kind: VerifyFindingKind::DamagedStorage,
        collection: whole.collection.unwrap_or_default(),
        index: whole.index,
        message: format!("{what}{range}: {detail}"),
    }
}
