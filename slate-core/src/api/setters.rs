//! The setters that several builders share, each described once.

/// Declares setters inside an `impl` block of a builder: `setters! { path.to.field: sort, skip; other: deadline }` calls
/// the field's method of the same name. `setters! { async: sort, skip }` calls the method of the builder that a
/// [`Call`](crate::aio::Call) holds.
macro_rules! setters {
    (async: $($name:ident),*) => {
        $(setters!(@ $name async);)*
    };
    ($($field:ident $(. $rest:ident)*: $($name:ident),*);*) => {
        $(setters!(@@ [$field $(. $rest)*] $($name)*);)*
    };
    (@@ $path:tt $($name:ident)*) => {
        $(setters!(@ $name $path);)*
    };

    (@ sort $to:tt) => {
        setters! { @method $to
            /// Orders by fields, each 1 (ascending) or -1; `{ $natural: 1 }` is the order of `_id`. A write of one
            /// document changes the first in this order, by default in the order of `_id`. Distinct values can be
            /// sorted by their own path only.
            sort(sort: impl crate::IntoDocument)
        }
    };
    (@ projection $to:tt) => {
        setters! { @method $to
            /// Sets the projection, in MongoDB's form: the fields to return of each document.
            projection(projection: impl crate::IntoDocument)
        }
    };
    (@ skip $to:tt) => {
        setters! { @method $to
            /// Skips this many documents or distinct values.
            skip(count: u64)
        }
    };
    (@ limit $to:tt) => {
        setters! { @method $to
            /// Stops after this many documents or distinct values.
            limit(count: u64)
        }
    };
    (@ hint $to:tt) => {
        setters! { @method $to
            /// Uses this index, or a scan in ascending or descending order of `_id`, instead of the access path that the planner would choose.
            hint(hint: crate::Hint)
        }
    };
    (@ memory_limit $to:tt) => {
        setters! { @method $to
            /// Sets the maximum bytes of rows held in memory; the rest is written to temporary files. The default is
            /// the database's, see [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
            memory_limit(bytes: usize)
        }
    };
    (@ allow_disk_use $to:tt) => {
        setters! { @method $to
            /// Sets whether rows beyond the memory limit are written to temporary files, which is the default. Otherwise the call fails with
            /// MongoDB's code 292.
            allow_disk_use(is_allowed: bool)
        }
    };
    (@ let_variables $to:tt) => {
        setters! { @method $to
            /// Defines variables, which expressions use as `$$name`: a document of names and their values, which may be expressions
            /// that read no field.
            let_variables(variables: impl crate::IntoDocument)
        }
    };
    (@ collation $to:tt) => {
        setters! { @method $to
            /// Compares strings by a collation, in MongoDB's form: `{ locale: "en", strength: 2 }` ignores case. Only indexes with the same
            /// collation serve conditions on strings and the order of a sort.
            collation(collation: impl crate::IntoDocument)
        }
    };
    (@ bypass_document_validation $to:tt) => {
        setters! { @method $to
            /// Sets whether documents that violate the validator of the collection are written. The default is `false`.
            bypass_document_validation(is_bypassed: bool)
        }
    };
    (@ bypass_empty_ts_replacement $to:tt) => {
        setters! { @method $to
            /// Sets whether empty timestamps, `Timestamp(0, 0)`, are stored unchanged. By default those at the top level of inserted documents and
            /// replacements become the current time.
            bypass_empty_ts_replacement(is_bypassed: bool)
        }
    };
    (@ force $to:tt) => {
        setters! { @method $to
            /// Uses the candidate access path with this number, counted from 0; see
            /// [`Explain::candidates`](crate::Explain::candidates).
            #[cfg(feature = "unstable-testing")]
            force(candidate: usize)
        }
    };
    (@ deadline $to:tt) => {
        setters! { @method $to
            /// Fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the call does not end within this
            /// time from now. A write then has changed nothing.
            deadline(within: std::time::Duration)
        }
    };
    (@ cancel $to:tt) => {
        setters! { @token $to }
        setters! { @method $to
            /// Fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when the token is cancelled. A write
            /// then has changed nothing.
            cancel(token: crate::CancelToken)
        }
    };
    (@ array_filters $to:tt) => {
        setters! { @method $to
            /// Sets the conditions on array elements for `$[name]` in the update's paths.
            array_filters(filters: impl IntoIterator<Item = impl crate::IntoDocument>)
        }
    };
    (@ upsert $to:tt) => {
        setters! { @method $to
            /// If no document matches, inserts one made of the filter's equalities and the update.
            upsert()
        }
    };
    (@ return_document $to:tt) => {
        setters! { @method $to
            /// Chooses whether to return the document before the change (the default) or after it.
            return_document(returns: crate::ReturnDocument)
        }
    };
    (@ ordered $to:tt) => {
        setters! { @method $to
            /// Reports refused writes in the result's `errors`. With `true` the first refused write ends the call, and
            /// those before it are done; with `false` all other writes are done, in order.
            ordered(ordered: bool)
        }
    };
    (@ all_or_nothing $to:tt) => {
        setters! { @method $to
            /// Does all writes or none: if a write is refused, the call fails with its error.
            all_or_nothing()
        }
    };

    (@token async) => {};
    (@token [$($field:tt)*]) => {
        /// Replaces the caller's token by a child of it, and returns the child.
        #[cfg(feature = "async")]
        pub(crate) fn child_token(&mut self) -> crate::CancelToken {
            self.$($field)*.child_token()
        }
    };

    (@method async $(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty)?)) => {
        $(#[$attribute])*
        pub fn $name(self, $($argument: $type)?) -> Self {
            self.map(|builder| builder.$name($($argument)?))
        }
    };
    (@method [$($field:tt)*] $(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty)?)) => {
        $(#[$attribute])*
        pub fn $name(mut self, $($argument: $type)?) -> Self {
            self.$($field)*.$name($($argument)?);
            self
        }
    };
}
pub(crate) use setters;
