/// Lets a stage be shown by its argument: in plans by `Display`, in MongoDB's `explain` as a value.
macro_rules! shown_argument {
    ($stage:ident) => {
        impl $stage {
            /// Returns the argument of the stage, as explain shows it.
            pub fn argument(&self) -> $crate::raw::Value<'_> {
                self.argument.as_value()
            }
        }

        impl std::fmt::Display for $stage {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.argument)
            }
        }
    };
}

pub(super) use shown_argument;
