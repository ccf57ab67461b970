use std::{fmt, sync::Arc};

#[cfg(feature = "async")]
use crate::{
    Aggregate, Count, Delete, Distinct, Find, FindOne, FindOneAndDelete, FindOneAndUpdate, Update,
    interrupt::WaitBudget,
};
use crate::{
    call::{Request, Scope},
    call_context::CallContext,
    interrupt::CallLimits,
};

/// The arguments that the builder of a call collects, with the collection and the scope in which it is executed.
#[derive(Clone)]
pub(crate) struct ScopedRequest {
    pub(super) scope: Scope,
    pub(super) collection: Arc<str>,
    pub(super) request: Request,
}

impl ScopedRequest {
    /// Creates the arguments of a call that begins now, within the limits of its handle.
    pub(super) fn new(scope: Scope, collection: &Arc<str>, limits: &CallLimits, mut request: Request) -> Self {
        request.call = CallContext::begin(limits);
        Self { scope, collection: Arc::clone(collection), request }
    }
}

impl fmt::Debug for ScopedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("collection", &self.collection).field("request", &self.request).finish()
    }
}

/// A builder whose call the async API tries first without waiting.
#[cfg(feature = "async")]
pub(crate) trait TriedCall: Clone {
    fn scoped(&self) -> &ScopedRequest;

    fn scoped_mut(&mut self) -> &mut ScopedRequest;

    /// Returns the same call with this budget: it ends when it has spent it. `None` if the call must not be tried: a pipeline that writes, and every
    /// call in a scope that would wait.
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        let ScopedRequest { scope, request, .. } = self.scoped();
        if !scope.tries_queries() || request.writes() {
            return None;
        }
        let mut tried = self.clone();
        let call = &mut tried.scoped_mut().request.call;
        *call = call.within_budget(budget);
        Some(tried)
    }

    /// Returns the budget of a call that must not wait; `None` for a call that may wait.
    fn budget(&self) -> Option<&WaitBudget> {
        self.scoped().request.call.interrupt.budget()
    }
}

/// Implements [`TriedCall`] for builders with this field.
#[cfg(feature = "async")]
macro_rules! tried_calls {
    ($([$($generic:ident)?] $builder:ty: $field:ident $(. $rest:ident)*;)*) => {
        $(
            impl$(<$generic>)? TriedCall for $builder {
                fn scoped(&self) -> &ScopedRequest {
                    &self.$field$(.$rest)*
                }

                fn scoped_mut(&mut self) -> &mut ScopedRequest {
                    &mut self.$field$(.$rest)*
                }
            }
        )*
    };
}

#[cfg(feature = "async")]
tried_calls! {
    [T] Find<T>: scoped;
    [T] FindOne<T>: find.scoped;
    [T] Aggregate<T>: scoped;
    [] Count: scoped;
    [] Distinct: scoped;
    [] Update: scoped;
    [] Delete: scoped;
    [T] FindOneAndUpdate<T>: scoped;
    [T] FindOneAndDelete<T>: scoped;
}
