//! Suggests correct names for mistyped ones.

use slate_core::OperatorKind;

/// The least similarity of a suggested name, from 0 to 1: about one wrong character of three.
const SIMILAR: f64 = 0.6;

/// Returns the operator most similar to the unknown one in an error message; `None` if none is similar.
pub(crate) fn operator(message: &str) -> Option<&'static str> {
    let (_, name) = message.split_once('$')?;
    let end = name.split(|character: char| !character.is_ascii_alphanumeric()).next()?;
    self::name(kind(message)?.names().into_iter(), end)
}

/// Returns the name most similar to `other`, ignoring case and the `$` of `names`; `None` below the similarity
/// [`SIMILAR`].
pub(crate) fn name<'a>(names: impl Iterator<Item = &'a str>, other: &str) -> Option<&'a str> {
    let other = other.to_lowercase();
    let similarity =
        |known: &str| strsim::normalized_damerau_levenshtein(&known.trim_start_matches('$').to_lowercase(), &other);
    let names = names.map(|known| (known, similarity(known)));
    let (best, similarity) = names.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (similarity >= SIMILAR).then_some(best)
}

/// Returns the kind of operator that is unknown according to an error message; `None` for other messages.
fn kind(message: &str) -> Option<OperatorKind> {
    let kinds = [
        ("unknown operator", OperatorKind::Filter),
        ("unknown top level operator", OperatorKind::Filter),
        ("unknown modifier", OperatorKind::Update),
        ("unknown expression", OperatorKind::Expression),
        ("unknown group operator", OperatorKind::Accumulator),
        ("unrecognized pipeline stage", OperatorKind::Stage),
    ];
    let message = message.to_lowercase();
    kinds.into_iter().find_map(|(beginning, kind)| message.starts_with(beginning).then_some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_operator_has_a_similar_one() {
        assert_eq!(operator("unknown operator: $eqq"), Some("$eq"));
        assert_eq!(operator("Unrecognized pipeline stage name: '$grup'"), Some("$group"));
        assert_eq!(operator("unknown expression '$yaer'"), Some("$year"));
        assert_eq!(operator("unknown modifier: $st"), Some("$set"));
        assert_eq!(operator("unknown operator: $frobnicate"), None);
        assert_eq!(operator("unknown top level operator: $nro"), Some("$nor"));
        assert_eq!(operator("$and/$or/$nor must be a nonempty array"), None);
        assert_eq!(operator("costs $ 5"), None);
    }
}
