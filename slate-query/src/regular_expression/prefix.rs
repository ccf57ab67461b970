use regex_syntax::{
    ParserBuilder,
    hir::{Hir, HirKind, Look},
};

/// Returns the prefix of every match of a pattern (in the engine's notation) that is anchored at the start of the text;
/// `None` if no prefix is known.
///
/// It is computed from the syntax tree that the engine compiles, so that both interpret the pattern alike.
pub(super) fn prefix(pattern: &str) -> Option<Box<[u8]>> {
    let tree = ParserBuilder::new().utf8(false).build().parse(pattern).ok()?;
    let mut prefix = Vec::new();
    let HirKind::Concat(items) = tree.kind() else { return None };
    let (anchor, items) = items.split_first()?;
    if *anchor.kind() != HirKind::Look(Look::Start) {
        return None;
    }
    for item in items {
        if !literal(item, &mut prefix) {
            break;
        }
    }
    (!prefix.is_empty()).then(|| prefix.into())
}

/// Returns whether a pattern (in the engine's notation) matches the empty text.
pub(super) fn can_be_empty(pattern: &str) -> bool {
    let tree = ParserBuilder::new().utf8(false).build().parse(pattern);
    tree.is_ok_and(|tree| tree.properties().minimum_len() == Some(0))
}

/// Appends the prefix of every match of `tree`, and returns whether `tree` matches nothing but this text.
fn literal(tree: &Hir, prefix: &mut Vec<u8>) -> bool {
    match tree.kind() {
        HirKind::Empty => true,
        HirKind::Literal(literal) => {
            prefix.extend_from_slice(&literal.0);
            true
        }
        HirKind::Capture(capture) => literal(&capture.sub, prefix),
        HirKind::Concat(items) => items.iter().all(|item| literal(item, prefix)),
        HirKind::Repetition(repetition) => {
            if repetition.min > 0 {
                literal(&repetition.sub, prefix);
            }
            false
        }
        HirKind::Class(_) | HirKind::Look(_) | HirKind::Alternation(_) => false,
    }
}
