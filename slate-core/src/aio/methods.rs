/// Declares methods of an async handle that are those of the blocking handle `$of`, its field `blocking`: `handles` return the
/// handle changed, `values` what the blocking method returns, `calls` its builder. `read`, `write` and `block` are the handle's own
/// methods that execute the blocking one, with copies of its arguments, or with the arguments themselves after `owned`.
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
