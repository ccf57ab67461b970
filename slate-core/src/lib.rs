//! Slate.
