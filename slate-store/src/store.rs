//! The contract. Nothing here names a backend.
