//! `$bucketAuto`: divides the documents, in the order of an expression's value, into buckets of about the same size.

mod granularity;
mod parse;

pub(super) use parse::parse;

use self::granularity::Granularity;
use super::group::{Group, GroupStates, Member};
use crate::{
    Code, Error, Result,
    expression::{Evaluated, Needs, check_row},
    held,
    number::Number,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

/// A parsed `$bucketAuto`.
#[derive(Clone, Debug)]
pub struct BucketAuto {
    /// Groups by the value that orders the documents.
    group: Group,
    buckets: u64,
    granularity: Option<Granularity>,
    argument: OwnedValue,
}

/// Divides sorted documents into buckets, one at a time.
#[derive(Debug)]
pub struct Buckets {
    stage: BucketAuto,
    bucket: Bucket,
}

/// The current bucket.
#[derive(Debug)]
struct Bucket {
    /// The number of documents per bucket. A bucket also gets the documents that are equal to its last one.
    size: u64,
    /// The number of complete buckets.
    complete: u64,
    states: GroupStates,
    /// The number of documents in the bucket.
    count: u64,
    least: OwnedValue,
    greatest: OwnedValue,
    /// The key of the greatest value.
    key: Vec<u8>,
    /// The rounded greatest value, once the bucket is full.
    boundary: Option<Number>,
}

impl BucketAuto {
    /// Calls `visit` with the key that orders a document.
    ///
    /// # Errors
    /// The errors of the expression and of `visit`; 40258 to 40260 for a value that the granularity cannot round.
    pub fn visit_key<R, E: From<Error>>(
        &self,
        document: Doc<'_>,
        key: &mut Vec<u8>,
        visit: impl FnOnce(&[u8]) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.group.visit(document, |member| {
            if self.granularity.is_some() {
                granularity::number(member.id()).map_err(|(code, message)| Error::new(Code(code), message))?;
            }
            member.key(key);
            visit(key)
        })
    }

    /// Starts the buckets of this many documents.
    pub fn start(&self, documents: u64) -> Buckets {
        // The nearest whole number.
        let size = documents.saturating_add(self.buckets / 2) / self.buckets;
        let null = || Value::NULL.to_owned();
        let bucket = Bucket {
            size: size.max(1),
            complete: 0,
            states: GroupStates::default(),
            count: 0,
            least: null(),
            greatest: null(),
            key: Vec::new(),
            boundary: None,
        };
        Buckets { stage: self.clone(), bucket }
    }

    /// Returns the fields that the stage reads.
    pub(in crate::pipeline) fn needs(&self) -> Needs {
        self.group.needs()
    }
}

impl Buckets {
    /// Adds the next document to the current bucket. Returns false if it begins the next one.
    ///
    /// # Errors
    /// The errors of the expressions.
    pub fn add(&mut self, document: Doc<'_>, buffer: &mut Vec<u8>) -> Result<bool> {
        let Self { stage, bucket } = self;
        stage.group.visit(document, |member| {
            member.key(buffer);
            bucket.add(stage, member, buffer)
        })
    }

    /// Completes the bucket, and replaces the content of `out` by its document. `next` is the document that begins the next
    /// bucket. Returns false if the bucket is empty.
    ///
    /// # Errors
    /// The errors of the expression.
    pub fn finish(&mut self, next: Option<Doc<'_>>, out: &mut Vec<u8>) -> Result<bool> {
        let Self { stage, bucket } = self;
        if bucket.count == 0 {
            return Ok(false);
        }
        let value = |next| stage.group.visit(next, |member| Ok::<_, Error>(member.id().to_owned()));
        bucket.finish(stage, next.map(value).transpose()?, out);
        check_row(out.len())?;
        Ok(true)
    }
}

impl Bucket {
    fn add(&mut self, stage: &BucketAuto, member: &Member<'_>, key: &[u8]) -> Result<bool> {
        if self.count == 0 {
            self.states.clear();
            stage.group.enter(&mut self.states, member);
            self.least = self.first_boundary(stage, member);
            self.boundary = None;
        } else if !self.takes(stage, member, key) {
            return Ok(false);
        }
        stage.group.add(&mut self.states, 0, member, 1)?;
        held::check_group(self.states.memory())?;
        self.count += 1;
        if self.key != key || self.count == 1 {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        // Of values that are equal but of different types, the last is the greatest.
        let id = member.id();
        if self.greatest.as_value().kind() != id.kind() || self.greatest.as_value().bytes() != id.bytes() {
            self.greatest = id.to_owned();
        }
        Ok(true)
    }

    /// Returns the lower boundary of a bucket: the value of its first document. With a granularity, the upper boundary
    /// of the previous bucket.
    fn first_boundary(&self, stage: &BucketAuto, member: &Member<'_>) -> OwnedValue {
        match (&stage.granularity, Number::of(member.id())) {
            (Some(_), _) if self.complete > 0 => self.greatest.clone(),
            (Some(granularity), Some(number)) => value(granularity.down(number)),
            _ => member.id().to_owned(),
        }
    }

    /// Returns whether a document belongs to the bucket, which is not empty.
    fn takes(&mut self, stage: &BucketAuto, member: &Member<'_>, key: &[u8]) -> bool {
        if self.count < self.size || self.complete + 1 == stage.buckets {
            return true;
        }
        match &stage.granularity {
            None => self.key == key,
            Some(granularity) => {
                let rounded = || Number::of(self.greatest.as_value()).map(|number| granularity.up(number));
                self.boundary = self.boundary.or_else(rounded);
                self.boundary.zip(Number::of(member.id())).is_some_and(|(boundary, number)| number < boundary)
            }
        }
    }

    /// Writes the bucket's document. `next` is the first value of the next bucket.
    fn finish(&mut self, stage: &BucketAuto, next: Option<OwnedValue>, out: &mut Vec<u8>) {
        match (&stage.granularity, Number::of(self.greatest.as_value())) {
            (Some(granularity), Some(number)) => {
                let boundary = self.boundary.unwrap_or_else(|| granularity.up(number));
                let next = next.as_ref().and_then(|next| Number::of(next.as_value()));
                // Zero is rounded to itself, but the upper boundary must be above the zeros in the bucket.
                let is_zero = boundary == Number::Int32(0);
                self.greatest = value(next.filter(|_| is_zero).map_or(boundary, |next| granularity.down(next)));
            }
            _ => {
                if let Some(next) = next {
                    self.greatest = next;
                }
            }
        }
        let mut id = Writer::new();
        id.append(b"min", self.least.as_value());
        id.append(b"max", self.greatest.as_value());
        stage.group.finish_first_as(&mut self.states, Value::new(Kind::Document, &id.finish()), out);
        self.count = 0;
        self.complete += 1;
    }
}

fn value(number: Number) -> OwnedValue {
    Evaluated::from(number).as_value().unwrap_or(Value::NULL).to_owned()
}

crate::pipeline::shown_argument!(BucketAuto);
