/// Declares methods of an async handle that forward to its field `blocking`, of type `$of`. `handles` return a changed handle, `values` the result of
/// the blocking method, `calls` its builder as a `Call`. `read`, `write` and `block` name the handle's method that executes the blocking one, with
/// copies of its arguments, or after `owned` with the arguments themselves.
macro_rules! methods {
    (handles $of:literal: $($(#[$more:meta])* $name:ident($($argument:ident: $type:ty)?);)*) => {
        $(
            #[doc = methods!(@ see $of $name)]
            $(#[$more])*
            #[must_use]
            pub fn $name(&self, $($argument: $type)?) -> Self {
                self.with(self.blocking.$name($($argument)?))
            }
        )*
    };
    (values $of:literal: $($name:ident($($argument:ident: $type:ty)?) $(-> $output:ty)?;)*) => {
        $(
            #[doc = methods!(@ see $of $name)]
            pub fn $name(&self, $($argument: $type)?) $(-> $output)? {
                self.blocking.$name($($argument)?)
            }
        )*
    };
    (calls $of:literal: $($name:ident $([$($generics:tt)*])? ($($argument:ident: $type:ty),*) -> $builder:ty;)*) => {
        $(
            #[doc = methods!(@ see $of $name)]
            pub fn $name$(<$($generics)*>)?(&self, $($argument: $type),*) -> Call<$builder> {
                Call::new(self.blocking.$name($($argument),*), self.runner())
            }
        )*
    };
    ($how:ident $of:literal: $($name:ident($($argument:ident: &$type:ty)?) -> $output:ty;)*) => {
        $(
            #[doc = methods!(@ see $of $name)]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "As the blocking method."]
            pub fn $name(&self, $($argument: &$type)?) -> Operation<$output> {
                $(let $argument = $argument.to_owned();)?
                self.$how(move |blocking| blocking.$name($(&$argument)?))
            }
        )*
    };
    ($how:ident $of:literal owned: $($name:ident($argument:ident: $type:ty) -> $output:ty;)*) => {
        $(
            #[doc = methods!(@ see $of $name)]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "As the blocking method."]
            pub fn $name(&self, $argument: $type) -> Operation<$output> {
                self.$how(move |blocking| blocking.$name($argument))
            }
        )*
    };
    (@ see $of:literal $name:ident) => {
        concat!("See [`slate_core::", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")
    };
}
pub(super) use methods;
