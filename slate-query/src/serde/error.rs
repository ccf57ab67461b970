use std::fmt;

use crate::raw::MAX_DEPTH;

/// An error of a conversion between BSON and a Rust type: a message, and the path of the field at fault if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorInner {
    message: Box<str>,
    path: Option<String>,
    is_too_deep: bool,
}

impl Error {
    #[cold]
    pub(super) fn new(message: impl Into<Box<str>>) -> Self {
        Self(Box::new(ErrorInner { message: message.into(), path: None, is_too_deep: false }))
    }

    /// Returns the error for a value that nests deeper than [`MAX_DEPTH`].
    #[cold]
    pub(super) fn too_deep() -> Self {
        let message = format!("documents may nest at most {MAX_DEPTH} deep").into();
        Self(Box::new(ErrorInner { message, path: None, is_too_deep: true }))
    }

    /// Returns whether the value nests deeper than [`MAX_DEPTH`].
    pub fn is_too_deep(&self) -> bool {
        self.0.is_too_deep
    }

    /// Returns the error for bytes that are not valid BSON.
    #[cold]
    pub(super) fn damaged() -> Self {
        Self::new("the bytes are not valid BSON")
    }

    /// Prepends a field's name or an array position to the path.
    #[cold]
    pub(super) fn within(mut self, name: impl fmt::Display) -> Self {
        let path = self.0.path.take().map_or_else(|| name.to_string(), |inner| format!("{name}.{inner}"));
        self.0.path = Some(path);
        self
    }

    /// Returns the message without the path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the dotted path of the field at fault, such as `address.lines.2`; `None` if it is the whole document.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.path.as_ref().map_or(Ok(()), |path| write!(f, " (at '{path}')"))
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl serde::ser::Error for Error {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
