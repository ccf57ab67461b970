//! Errors: whatever a database gives, with its cause; and the one that a row is skipped for.

use std::fmt;

/// Any error. A bench tells of it and ends; it never decides by what kind it is, except [`Unsupported`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A result whose error is any.
pub type Result<T> = std::result::Result<T, Failure>;

/// What a database cannot do. The row is reported as such, and the run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl Unsupported {
    /// With the reason, for the report: `"no index is used by a sort"`.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The reason, where that is what the error says.
    pub fn reason(error: &Failure) -> Option<&str> {
        error.downcast_ref::<Self>().map(|unsupported| unsupported.0.as_str())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not supported: {}", self.0)
    }
}

impl std::error::Error for Unsupported {}

/// An error with all its causes, in one line.
pub fn chain(error: &Failure) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_is_told_from_other_errors() {
        let unsupported: Failure = Unsupported::because("no arrays").into();
        assert_eq!(Unsupported::reason(&unsupported), Some("no arrays"));
        let other: Failure = "the disk is full".into();
        assert_eq!(Unsupported::reason(&other), None);
    }

    #[test]
    fn causes_are_told_once() {
        let error: Failure = Box::new(std::io::Error::other(std::io::Error::other("the disk is full")));
        assert_eq!(chain(&error), "the disk is full");
    }
}
