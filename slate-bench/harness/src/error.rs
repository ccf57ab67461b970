//! Errors of a database with their causes, and the error for unsupported rows.

use std::fmt;

/// Any error. A bench reports it and ends; only [`Unsupported`] is handled differently.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A result with any error.
pub type Result<T> = std::result::Result<T, Failure>;

/// The database does not support an operation. The row is reported as unsupported, and the run continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl Unsupported {
    /// Creates the error with a reason for the report, such as `"no index is used by a sort"`.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Returns the reason if the error is `Unsupported`.
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

/// Formats an error with all its causes in one line.
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
    fn unsupported_is_distinguished_from_other_errors() {
        let unsupported: Failure = Unsupported::because("no arrays").into();
        assert_eq!(Unsupported::reason(&unsupported), Some("no arrays"));
        let other: Failure = "the disk is full".into();
        assert_eq!(Unsupported::reason(&other), None);
    }

    #[test]
    fn causes_are_listed_once() {
        let error: Failure = Box::new(std::io::Error::other(std::io::Error::other("the disk is full")));
        assert_eq!(chain(&error), "the disk is full");
    }
}
