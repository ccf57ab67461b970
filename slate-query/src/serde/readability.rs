/// The form of types that have one for people and one for machines, such as UUIDs and dates of `chrono`; serde's `is_human_readable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Readability {
    #[default]
    Compact,
    HumanReadable,
}
