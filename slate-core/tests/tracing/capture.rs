//! A subscriber that keeps all spans and events of one thread.

#![allow(unreachable_pub, missing_docs, reason = "a test's own module")]

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Span,
    Event,
}

/// A span or an event.
#[derive(Clone, Debug)]
pub struct Captured {
    pub kind: Kind,
    pub target: &'static str,
    pub name: &'static str,
    pub level: Level,
    pub id: u64,
    /// The span that was entered.
    pub parent: Option<u64>,
    pub is_closed: bool,
    fields: Vec<(&'static str, String)>,
}

impl Captured {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(field, _)| *field == name).map(|(_, value)| &**value)
    }

    pub fn message(&self) -> Option<&str> {
        self.field("message")
    }
}

#[derive(Default)]
struct State {
    records: Vec<Captured>,
    entered: Vec<u64>,
}

#[derive(Clone, Default)]
struct Capture(Arc<Mutex<State>>);

/// Returns the result of `work`, and what it reported on this thread.
pub fn capture<R>(work: impl FnOnce() -> R) -> (R, Vec<Captured>) {
    let capture = Capture::default();
    // tracing caches whether a span has listeners. With one subscriber it consults only the thread that comes to the span first, which may be
    // that of another test; a second one makes it consult all subscribers.
    let _second = Dispatch::new(capture.clone());
    let result = tracing::subscriber::with_default(capture.clone(), work);
    let records = capture.0.lock().unwrap().records.clone();
    (result, records)
}

struct Fields<'f>(&'f mut Vec<(&'static str, String)>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }
}

impl Capture {
    fn push(&self, kind: Kind, metadata: &'static Metadata<'static>, record: impl FnOnce(&mut Fields<'_>)) -> u64 {
        let mut state = self.0.lock().unwrap();
        let mut fields = Vec::new();
        record(&mut Fields(&mut fields));
        let id = state.records.len() as u64 + 1;
        let parent = state.entered.last().copied();
        let (target, name, level) = (metadata.target(), metadata.name(), *metadata.level());
        state.records.push(Captured { kind, target, name, level, id, parent, is_closed: false, fields });
        id
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("slate")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Id::from_u64(self.push(Kind::Span, span.metadata(), |fields| span.record(fields)))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut state = self.0.lock().unwrap();
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Fields(&mut state.records.get_mut(at).unwrap().fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.push(Kind::Event, event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut state = self.0.lock().unwrap();
        assert_eq!(state.entered.pop(), Some(span.into_u64()), "spans are left in the reverse order");
    }

    fn try_close(&self, span: Id) -> bool {
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        self.0.lock().unwrap().records.get_mut(at).unwrap().is_closed = true;
        true
    }
}
