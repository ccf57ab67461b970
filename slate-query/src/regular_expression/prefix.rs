use regex_syntax::{
    ParserBuilder,
    hir::{Hir, HirKind, Look},
};

/// The beginning that all texts that a pattern matches have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) text: Box<[u8]>,
    pub(crate) decides: Decides,
}

/// Whether the pattern matches every text with its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decides {
    All,
    Some,
}

/// Returns the prefix of every text that a pattern (in the engine's notation) matches; `None` if none is known.
///
/// It is computed from the syntax tree that the engine compiles, so that both interpret the pattern alike.
pub(super) fn prefix(pattern: &str) -> Option<Prefix> {
    let tree = ParserBuilder::new().utf8(false).build().parse(pattern).ok()?;
    let items = if let HirKind::Concat(items) = tree.kind() { items } else { std::slice::from_ref(&tree) };
    let is_anchored = items.first().is_some_and(|item| *item.kind() == HirKind::Look(Look::Start));
    let (mut text, mut rest) = (Vec::new(), items);
    if is_anchored {
        rest = rest.get(1..).unwrap_or_default();
        while let Some((item, others)) = rest.split_first()
            && literal(item, &mut text)
        {
            rest = others;
        }
    }
    // An item that matches the empty text at every position rejects no text.
    let can_be_empty =
        |item: &Hir| item.properties().minimum_len() == Some(0) && item.properties().look_set().is_empty();
    let decides = if rest.iter().all(can_be_empty) { Decides::All } else { Decides::Some };
    (decides == Decides::All || !text.is_empty()).then(|| Prefix { text: text.into(), decides })
}

/// Returns whether a pattern (in the engine's notation) matches the empty text.
pub(super) fn can_be_empty(pattern: &str) -> bool {
    let tree = ParserBuilder::new().utf8(false).build().parse(pattern);
    tree.is_ok_and(|tree| tree.properties().minimum_len() == Some(0))
}

/// Appends the prefix of every match of `tree` to `prefix`, and returns whether `tree` matches nothing but this text.
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
