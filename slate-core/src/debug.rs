/// Implements `Debug` for a type with fields that are not shown: `shown! { self: Expire { now: self.now } }`.
macro_rules! shown {
    ($this:ident: $name:ident $(<$($generic:tt),*>)? { $($field:ident: $value:expr),* }) => {
        impl$(<$($generic),*>)? std::fmt::Debug for $name$(<$($generic),*>)? {
            fn fmt(&$this, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use shown;

/// Implements `Clone` for a generic type by cloning these fields, without requiring `T: Clone`.
macro_rules! cloned {
    ($name:ident { $($field:ident),* }) => {
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                Self { $($field: Clone::clone(&self.$field)),* }
            }
        }
    };
}
pub(crate) use cloned;
