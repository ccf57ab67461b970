/// Which documents the validator of a collection checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValidationLevel {
    /// None.
    Off,
    /// All inserted or changed documents.
    #[default]
    Strict,
    /// Inserted documents, and changed documents that were valid before the change.
    Moderate,
}

/// What happens to a write that violates the validator of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValidationAction {
    /// It fails.
    #[default]
    Error,
    /// It is accepted.
    Warn,
}

impl ValidationLevel {
    /// Returns the level of this name in MongoDB.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Off, Self::Strict, Self::Moderate].into_iter().find(|level| level.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Strict => "strict",
            Self::Moderate => "moderate",
        }
    }
}

impl ValidationAction {
    /// Returns the action of this name in MongoDB. `errorAndLog` is `error`: Slate has no log.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "error" | "errorAndLog" => Some(Self::Error),
            "warn" => Some(Self::Warn),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
        }
    }
}
