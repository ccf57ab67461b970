/// The form that types such as dates of `chrono` or UUIDs choose if they have one for people and one for machines;
/// serde's `is_human_readable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Readability {
    #[default]
    Compact,
    HumanReadable,
}
