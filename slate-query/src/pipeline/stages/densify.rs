//! `$densify`: adds documents where the values of a field leave gaps.

use std::collections::HashMap;

use ahash::RandomState;

use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    expression::{Bindings, DateUnit, Evaluated, Needs},
    key,
    number::Number,
    order,
    path::{Path, field_path},
    pipeline::{Stage, nested::set},
    raw::{Doc, Kind, OwnedValue, SmallBytes, Value, Writer},
    sort::Sort,
    value_set::AsValue as _,
};

/// A parsed `$densify`. Its input is sorted by the fields of the partition, unless the bounds are full, and then by the field.
#[derive(Clone, Debug)]
pub struct Densify {
    field: Path,
    partition: Box<[Path]>,
    step: Number,
    unit: Option<DateUnit>,
    bounds: Bounds,
    /// How the strings of partitions are compared, if not by their bytes.
    collation: Option<Collation>,
    argument: OwnedValue,
}

/// The values between which gaps are filled.
#[derive(Clone, Debug)]
enum Bounds {
    /// The least and the greatest value of all partitions.
    Full,
    /// The least and the greatest value of each partition.
    Partition,
    /// From the first value up to, but without, the second.
    Explicit(OwnedValue, OwnedValue),
}

/// The most documents that a stage adds, as in MongoDB.
const MOST_ADDED: u64 = 500_000;

/// The most bytes that the partitions of a stage occupy, as in MongoDB.
const MOST_BYTES: usize = 100 << 20;

/// Parses the stage. Returns the `$sort` of its input, then the stage.
pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let refused = |message: &str| Error::new(Code::FAILED_TO_PARSE, message);
    let options =
        argument.as_document().ok_or_else(|| refused("the $densify stage specification must be an object"))?;
    let [field, partition, range] = fields("$densify", options, ["field", "partitionByFields", "range"])?;
    let text = |value: Value<'_>, name: &str| {
        let message = format!("'$densify.{name}' must be a string");
        value.as_str().map(str::to_owned).ok_or_else(|| Error::new(Code::TYPE_MISMATCH, message))
    };
    let field = text(field.ok_or_else(|| missing("$densify.field"))?, "field")?;
    let names = match partition {
        None => Vec::new(),
        Some(names) => {
            let message = "'$densify.partitionByFields' must be an array of strings";
            let names = names.as_array().ok_or_else(|| Error::new(Code::TYPE_MISMATCH, message))?;
            names.values().map(|name| text(name, "partitionByFields")).collect::<Result<_>>()?
        }
    };
    let range = range.ok_or_else(|| missing("$densify.range"))?;
    let range =
        range.as_document().ok_or_else(|| Error::new(Code::TYPE_MISMATCH, "'$densify.range' must be an object"))?;
    let (step, unit, bounds) = self::range(range)?;
    let partition: Box<[Path]> = names.iter().map(|name| field_path::parse(name)).collect::<Result<_>>()?;
    let field = field_path::parse(&field)?;
    for by in &partition {
        if by.parts().starts_with(field.parts()) {
            return Err(Error::new(Code(8_993_000), "partitionByFields contain the field that is densified"));
        }
        if field.parts().starts_with(by.parts()) {
            return Err(Error::new(Code(9_554_500), "the field that is densified is within one of partitionByFields"));
        }
    }
    if matches!(bounds, Bounds::Partition) && partition.is_empty() {
        let message = "the bounds 'partition' need a non-empty array of partitionByFields";
        return Err(Error::new(Code(5_733_408), message));
    }
    let mut by = Writer::new();
    let before = partition.iter().filter(|_| !matches!(bounds, Bounds::Full));
    for path in before.chain([&field]) {
        by.append(path.as_str().as_bytes(), Value::new(Kind::Int32, &1_i32.to_le_bytes()));
    }
    let sort = Sort::parse(Doc::new(&by.finish()))?.with_collation(bindings.collation().cloned());
    let collation = bindings.collation().cloned();
    let densify = Densify { field, partition, step, unit, bounds, collation, argument: argument.to_owned() };
    Ok(vec![Stage::Sort(sort), Stage::Densify(densify)])
}

/// Reads the values of these fields; `None` for a missing or null one, but null for a null `bounds`. Fails for other fields.
fn fields<'a, const N: usize>(of: &str, document: Doc<'a>, names: [&str; N]) -> Result<[Option<Value<'a>>; N]> {
    let mut values = [None; N];
    for element in document.elements() {
        let place = names.iter().position(|name| name.as_bytes() == element.name);
        match place.and_then(|place| values.get_mut(place)) {
            Some(_) if element.value.is_nullish() && element.name != b"bounds" => {}
            Some(value) => *value = Some(element.value),
            None => {
                let message = format!("BSON field '{of}.{}' is an unknown field.", element.display_name());
                return Err(Error::new(Code(40_415), message));
            }
        }
    }
    Ok(values)
}

fn missing(name: &str) -> Error {
    Error::new(Code(40_414), format!("BSON field '{name}' is missing but a required field"))
}

fn range(range: Doc<'_>) -> Result<(Number, Option<DateUnit>, Bounds)> {
    let refused = |code, message: &str| Err(Error::new(Code(code), message).at("range"));
    let [step, bounds, unit] = fields("$densify.range", range, ["step", "bounds", "unit"])?;
    let step_value = step.ok_or_else(|| missing("$densify.range.step"))?;
    let bounds = bounds.ok_or_else(|| missing("$densify.range.bounds"))?;
    let message = "'$densify.range.step' must be a number";
    let step = Number::of(step_value).ok_or_else(|| Error::new(Code::TYPE_MISMATCH, message))?;
    if !step.signum().is_gt() || step.is_nan() {
        return refused(5_733_401, "the step of a range must be a positive number");
    }
    let unit = match unit {
        None => None,
        Some(unit) => {
            let Some(name) = unit.as_str() else {
                return Err(Error::new(Code::TYPE_MISMATCH, "'$densify.range.unit' must be a string"));
            };
            if step.to_i64().is_none() {
                return refused(6_586_400, "the step of a range of dates must be a whole number");
            }
            Some(DateUnit::named(name)?)
        }
    };
    let bounds = match (bounds.as_str(), bounds.as_array()) {
        (Some("full"), _) => Bounds::Full,
        (Some("partition"), _) => Bounds::Partition,
        (Some(_), _) => return refused(5_946_802, "bounds that are a string must be 'full' or 'partition'"),
        (None, Some(limits)) => explicit(&limits.values().collect::<Vec<_>>(), step_value, unit)?,
        (None, None) => {
            return refused(5_733_404, "bounds are 'full', 'partition', or an array of two numbers or two dates");
        }
    };
    Ok((step, unit, bounds))
}

fn explicit(limits: &[Value<'_>], step: Value<'_>, unit: Option<DateUnit>) -> Result<Bounds> {
    let refused = |code, message: &str| Err(Error::new(Code(code), message).at("range"));
    let [low, high] = limits else {
        return refused(5_733_403, "an array of bounds must have two elements");
    };
    if order::compare(*low, *high).is_gt() {
        return refused(5_733_402, "an array of bounds must be ascending");
    }
    if low.kind().is_number() {
        if unit.is_some() {
            return refused(5_733_409, "numeric bounds have no unit");
        }
        if !high.kind().is_number() {
            return refused(5_733_406, "bounds must both be dates or both be numbers");
        }
        if low.kind() != high.kind() || low.kind() != step.kind() {
            return refused(5_876_900, "the bounds and the step must have the same type");
        }
    } else if low.kind() == Kind::DateTime {
        if high.kind() != Kind::DateTime {
            return refused(5_733_405, "bounds must both be dates or both be numbers");
        }
        if unit.is_none() {
            return refused(5_733_410, "bounds that are dates need a unit");
        }
    } else {
        return refused(5_946_800, "bounds must be numbers or dates");
    }
    Ok(Bounds::Explicit((*low).to_owned(), (*high).to_owned()))
}

impl Densify {
    pub(in crate::pipeline) fn needs(&self, mut after: Needs) -> Needs {
        self.partition.iter().chain([&self.field]).for_each(|path| after.add_path(path));
        after
    }

    /// Returns the value one step after `value`.
    fn after(&self, value: Value<'_>) -> Result<OwnedValue> {
        let next = match (self.unit, value.as_millis()) {
            (Some(unit), Some(millis)) => {
                Evaluated::date(unit.added_in_utc(millis, self.step.to_i64().unwrap_or_default())?)
            }
            _ => Evaluated::from(Number::of(value).unwrap_or(Number::Int32(0)).plus(self.step)),
        };
        Ok(next.as_value().unwrap_or(Value::NULL).to_owned())
    }

    /// Returns the value of the field; `None` if it is null or missing.
    fn value(&self, document: Doc<'_>) -> Result<Option<OwnedValue>> {
        let Some(value) = at(document, &self.field) else { return Ok(None) };
        match (value.kind(), self.unit) {
            (Kind::Null | Kind::Undefined, _) => Ok(None),
            (Kind::DateTime, Some(_)) => Ok(Some(value.to_owned())),
            (kind, None) if kind.is_number() => Ok(Some(value.to_owned())),
            (Kind::DateTime, None) => Err(Error::new(Code(6_053_600), "a range of dates needs a unit")),
            (kind, Some(_)) if kind.is_number() => {
                Err(Error::new(Code(6_053_600), "a range with a unit needs a field of dates"))
            }
            _ => Err(Error::new(Code(5_733_201), "the field of $densify must be a number or a date")),
        }
    }

    /// Returns the fields of the partition of a document, as a document.
    fn partition_of(&self, document: Doc<'_>) -> Result<Vec<u8>> {
        let mut fields = Doc::EMPTY.bytes().to_vec();
        let mut next = Vec::new();
        for path in &self.partition {
            if let Some(value) = at(document, path) {
                set(Doc::new(&fields), path.parts(), Some(value), &mut next);
                std::mem::swap(&mut fields, &mut next);
            }
        }
        self.check_path(Doc::new(&fields))?;
        Ok(fields)
    }

    /// Checks that the field can be added to the fields of a partition.
    fn check_path(&self, mut fields: Doc<'_>) -> Result<()> {
        for (place, part) in self.field.parts().iter().enumerate() {
            let Some(value) = fields.get(part.name()) else { return Ok(()) };
            if value.kind() == Kind::Array {
                let message = "$densify cannot generate fields nested inside arrays";
                return Err(Error::new(Code(5_733_307), message));
            }
            match value.as_document() {
                Some(inner) => fields = inner,
                None if place + 1 < self.field.parts().len() => {
                    let message = "$densify cannot overwrite non-object values with objects";
                    return Err(Error::new(Code(5_733_308), message));
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

crate::pipeline::shown_argument!(Densify);

/// Returns the value at a path that leads through documents only; `None` if it is missing.
fn at<'d>(document: Doc<'d>, path: &Path) -> Option<Value<'d>> {
    let (last, parents) = path.parts().split_last()?;
    let within = parents.iter().try_fold(document, |within, part| within.get(part.name())?.as_document())?;
    within.get(last.name())
}

/// The state of a stage: for each partition, the next value at which a document may be added.
#[derive(Debug, Default)]
pub struct DenseRows {
    partitions: HashMap<SmallBytes, usize, RandomState>,
    states: Vec<Partition>,
    /// The values of the first and the last document, which are the least and the greatest.
    least: Option<OwnedValue>,
    greatest: Option<OwnedValue>,
    /// The partition to which documents are added, and the end of the gap.
    gap: Option<(usize, Gap)>,
    /// The partition and the value of the document after the gap.
    behind: Option<(usize, OwnedValue)>,
    /// The partitions that were completed after the last document.
    completed: usize,
    added: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Partition {
    /// The fields that its documents have in common.
    fields: Vec<u8>,
    next: OwnedValue,
}

/// The end of a gap.
#[derive(Debug)]
enum Gap {
    Before(OwnedValue),
    UpTo(OwnedValue),
}

impl DenseRows {
    /// Begins the gap before the next document of the input. The caller calls [`add`](Self::add) until it returns false, then [`pass`](Self::pass).
    ///
    /// # Errors
    /// MongoDB's codes for a value that is not a number or a date, and for too many partitions.
    pub fn begin(&mut self, densify: &Densify, document: Doc<'_>) -> Result<()> {
        let Some(value) = densify.value(document)? else { return Ok(()) };
        let least = self.least.get_or_insert_with(|| value.clone()).clone();
        let first = match &densify.bounds {
            Bounds::Full => least,
            Bounds::Partition => value.clone(),
            Bounds::Explicit(low, _) => low.clone(),
        };
        let place = self.partition(densify, document, first)?;
        let end = match &densify.bounds {
            Bounds::Explicit(_, high) if order::compare(high.as_value(), value.as_value()).is_lt() => high.clone(),
            _ => value.clone(),
        };
        self.gap = Some((place, Gap::Before(end)));
        self.behind = Some((place, value.clone()));
        self.greatest = Some(value);
        Ok(())
    }

    /// Returns the partition of a document.
    fn partition(&mut self, densify: &Densify, document: Doc<'_>, first: OwnedValue) -> Result<usize> {
        let fields = densify.partition_of(document)?;
        let mut encoded = Vec::new();
        let compared = Compared::new(densify.collation.as_ref(), Value::new(Kind::Document, &fields));
        key::encode(compared.as_value(), &mut encoded);
        let new = self.states.len();
        let place = *self.partitions.entry(encoded.as_slice().into()).or_insert(new);
        if place == new {
            self.bytes += 2 * fields.len() + 128;
            if self.bytes > MOST_BYTES {
                let message = "the partitions of $densify used more than 100 MiB of memory";
                return Err(Error::new(Code(6_007_200), message));
            }
            self.states.push(Partition { fields, next: first });
        }
        Ok(place)
    }

    /// Writes into `out` (cleared first) the next document to add; returns false if there is none.
    ///
    /// # Errors
    /// 5897900 for more than 500,000 documents.
    pub fn add(&mut self, densify: &Densify, out: &mut Vec<u8>) -> Result<bool> {
        let Some((place, gap)) = &self.gap else { return Ok(false) };
        let Some(partition) = self.states.get_mut(*place) else { return Ok(false) };
        let is_within = match gap {
            Gap::Before(end) => order::compare(partition.next.as_value(), end.as_value()).is_lt(),
            Gap::UpTo(end) => order::compare(partition.next.as_value(), end.as_value()).is_le(),
        };
        if !is_within {
            self.gap = None;
            return Ok(false);
        }
        self.added += 1;
        if self.added > MOST_ADDED {
            let message = format!("$densify would add more than {MOST_ADDED} documents");
            return Err(Error::new(Code(5_897_900), message));
        }
        set(Doc::new(&partition.fields), densify.field.parts(), Some(partition.next.as_value()), out);
        partition.next = densify.after(partition.next.as_value())?;
        Ok(true)
    }

    /// Moves past the document of [`begin`](Self::begin). If the document has the next value to add, no document with this value is added.
    ///
    /// # Errors
    /// The errors of a date that cannot be represented.
    pub fn pass(&mut self, densify: &Densify) -> Result<()> {
        let Some((place, value)) = self.behind.take() else { return Ok(()) };
        if let Some(partition) = self.states.get_mut(place)
            && order::equal(partition.next.as_value(), value.as_value())
        {
            partition.next = densify.after(value.as_value())?;
        }
        Ok(())
    }

    /// Begins with the gap at the end of the next partition. Called after the last document. Returns false after the last
    /// partition, and always if each partition has its own bounds.
    pub fn complete(&mut self, densify: &Densify) -> bool {
        let end = match (&densify.bounds, &self.greatest) {
            (Bounds::Explicit(_, high), _) => Gap::Before(high.clone()),
            (Bounds::Full, Some(greatest)) => Gap::UpTo(greatest.clone()),
            (Bounds::Partition, _) | (_, None) => return false,
        };
        if let (Bounds::Explicit(low, _), true) = (&densify.bounds, self.states.is_empty()) {
            // No document has the field, so one partition without fields is filled.
            self.states.push(Partition { fields: Doc::EMPTY.bytes().to_vec(), next: low.clone() });
        }
        let place = self.completed;
        self.completed += 1;
        self.gap = Some((place, end));
        place < self.states.len()
    }
}
