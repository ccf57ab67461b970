use std::sync::Arc;

use super::{
    AccumulatorState, Start, Stored,
    collect::Push,
    find,
    percentile::{self, Operands, Percentile, Ranks},
    sum::Total,
};
use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    expression::{
        Env, Evaluated, Expression, Variables,
        operands::{self, parts},
    },
    key::{Direction, encode_directed},
    number::Number,
    raw::{Doc, FieldName, OwnedValue, Value},
    sort::Sort,
    value_set::AsValue as _,
};

/// How an accumulator's operand is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccumulatorForm {
    /// `{}`.
    Nothing,
    /// An expression.
    Operand,
    /// `{input: …, n: …}`.
    OperandN,
    /// `{output: …, sortBy: …}`.
    Sorted,
    /// `{output: …, sortBy: …, n: …}`.
    SortedN,
    /// `{input: …, p: …, method: …}`.
    Percentile,
}

/// An accumulator with its operand, parsed.
#[derive(Clone, Debug)]
pub struct AccumulatorSpec(Arc<Spec>);

#[derive(Debug)]
struct Spec {
    name: Box<str>,
    start: Start,
    operand: Expression,
    /// The operand, if it is the same number for every document.
    constant: Option<Number>,
    is_sum: bool,
    n: Option<Expression>,
    sort: Option<Sort>,
    /// The ranks of `$percentile` and `$median`.
    ranks: Option<Ranks>,
    collation: Option<Collation>,
}

impl Spec {
    fn start(&self, n: usize) -> Stored {
        // The table's functions have no parameter but `n`, and percentiles need others.
        let mut state = match &self.ranks {
            Some(ranks) => Stored::other(Percentile::new(ranks.clone())),
            None => (self.start)(n),
        };
        self.collation.iter().for_each(|collation| state.collate(collation));
        state
    }

    /// Returns the state of a group without documents. Adds its heap memory, in bytes, to `heap`.
    fn started(&self, id: Value<'_>, env: &Env<'_>, heap: &mut usize) -> Result<Stored> {
        let n = self.number(id, env, IN_GROUP)?.unwrap_or(1);
        let state = self.start(n);
        *heap += state.bytes();
        Ok(state)
    }

    /// Returns the number of values of a group; `None` for an accumulator without `n`. The expression reads the fields of the group's `id`.
    fn number(&self, id: Value<'_>, env: &Env<'_>, codes: NumberCodes) -> Result<Option<usize>> {
        let Some(n) = &self.n else { return Ok(None) };
        let env = env.with_document(id.as_document().unwrap_or(Doc::EMPTY));
        number(&self.name, &n.evaluate(&env)?, codes).map(Some)
    }
}

impl Spec {
    /// Returns in which direction the values are ordered, if the accumulator orders documents by them.
    fn value_order(&self) -> Option<Direction> {
        match &*self.name {
            "$addToSet" | "$minN" => Some(Direction::Ascending),
            "$maxN" => Some(Direction::Descending),
            _ => None,
        }
    }

    /// Does what [`AccumulatorSpec::add_and_measure`] does, for the first document of a group and for accumulators with a sort.
    #[inline(never)]
    fn start_or_sort(
        &self,
        gathered: &mut Gathered,
        id: Value<'_>,
        env: &Env<'_>,
        times: u64,
        heap: &mut usize,
    ) -> Result<()> {
        let state = match &mut gathered.0 {
            Some(state) => state,
            None => gathered.0.insert(self.started(id, env, heap)?),
        };
        let mut key = Vec::new();
        self.sort.as_ref().map_or(Ok(()), |sort| sort.key(env.root(), &mut key))?;
        self.operand.visit(env, |value| state.add_and_measure(value, &key, times, heap))?
    }
}

impl AccumulatorSpec {
    /// Parses the accumulator `name`.
    ///
    /// # Errors
    /// 15952 for an unknown name; MongoDB's code for an operand of the wrong form.
    pub fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Self> {
        let takes_one = matches!(find(name), Some(Some((AccumulatorForm::Operand, _))));
        if takes_one && operand.as_array().is_some() {
            return Err(Error::new(Code(40237), format!("the accumulator {name} takes one operand, not a list")));
        }
        Self::parse_over_window(name, operand, variables)
    }

    /// Like [`parse`](Self::parse), but an array is an operand and not a list of operands.
    pub(crate) fn parse_over_window(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Self> {
        let (form, start) = match find(name) {
            Some(Some(line)) => line,
            Some(None) => return Err(Error::unsupported(name)),
            None => return Err(Error::new(Code(15952), format!("unknown group operator '{name}'"))),
        };
        let collation = variables.collation().cloned();
        let spec = |operand: Expression, n, sort: Option<Sort>| {
            let sort = sort.map(|sort| sort.with_collation(collation.clone()));
            let constant = operand.as_constant().and_then(|value| Number::of(value.as_value()?));
            let is_sum = name == "$sum";
            Spec {
                name: name.into(),
                start,
                operand,
                constant,
                is_sum,
                n,
                sort,
                ranks: None,
                collation: collation.clone(),
            }
        };
        Ok(Self(Arc::new(match form {
            AccumulatorForm::Nothing => {
                if !operand.as_document().is_some_and(Doc::is_empty) {
                    return Err(Error::new(Code::TYPE_MISMATCH, format!("{name} takes an empty object")));
                }
                spec(Expression::constant(Value::NULL), None, None)
            }
            AccumulatorForm::Operand => spec(Expression::parse(operand, variables)?, None, None),
            AccumulatorForm::Percentile => {
                let Operands { input, ranks } = Operands::parse(name, operand, variables)?;
                let constant = |ranks: &Expression| match ranks.as_constant() {
                    Some(ranks) => Ranks::parse(ranks.as_value().unwrap_or(Value::NULL)),
                    None => Err(Error::new(Code(7_750_300), "the parameter 'p' of $percentile is constant").at("p")),
                };
                Spec { ranks: ranks.as_ref().map(constant).transpose()?, ..spec(input, None, None) }
            }
            AccumulatorForm::OperandN => {
                let not_an_object = if matches!(name, "$firstN" | "$lastN") { 5_787_801 } else { 5_787_900 };
                let [input, n] = parts(name, operand, ["input", "n"], (not_an_object, 5_787_901))?;
                spec(
                    need(input, name, "input", 5_787_907, variables)?,
                    Some(need(n, name, "n", 5_787_906, variables)?),
                    None,
                )
            }
            AccumulatorForm::Sorted | AccumulatorForm::SortedN => {
                let [output, sort, n] = parts(name, operand, ["output", "sortBy", "n"], (5_788_001, 5_788_002))?;
                let by =
                    sort.ok_or_else(|| Error::new(Code(5_788_005), format!("{name} needs the parameter 'sortBy'")))?;
                let by = by.as_document().ok_or_else(|| {
                    Error::new(Code(10_065), format!("the parameter 'sortBy' of {name} is an object"))
                })?;
                if by.is_empty() {
                    return Err(Error::new(Code(9_657_900), format!("the parameter 'sortBy' of {name} is not empty")));
                }
                let output = need(output, name, "output", 5_788_004, variables)?;
                let n = match (form, n) {
                    (AccumulatorForm::SortedN, n) => Some(need(n, name, "n", 5_788_003, variables)?),
                    (_, None) => None,
                    (_, Some(_)) => return Err(Error::new(Code(5_788_002), format!("{name} has no parameter 'n'"))),
                };
                spec(output, n, Some(Sort::parse(by)?))
            }
        })))
    }

    /// Adds a document to a group `times` times. The number of values, if the accumulator has one, is computed for the first document, from the
    /// fields of the group's `id`.
    ///
    /// # Errors
    /// MongoDB's code where a value has the wrong type.
    #[inline]
    pub fn add(&self, gathered: &mut Gathered, id: Value<'_>, env: &Env<'_>, times: u64) -> Result<()> {
        self.add_and_measure(gathered, id, env, times, &mut 0)
    }

    /// Like [`add`](Self::add), but also adds the growth of the group's heap memory, in bytes, to `heap`.
    #[inline]
    pub(crate) fn add_and_measure(
        &self,
        gathered: &mut Gathered,
        id: Value<'_>,
        env: &Env<'_>,
        times: u64,
        heap: &mut usize,
    ) -> Result<()> {
        let spec = &*self.0;
        // The most frequent accumulators: counts by `$sum`, and operands that are a field.
        match (&mut gathered.0, spec.constant) {
            (Some(Stored::Total(total)), Some(number)) => {
                total.add_number(number, times);
                Ok(())
            }
            (first @ None, Some(number)) if spec.is_sum => {
                *first = Some(Stored::Total(Total::of(number, times)));
                Ok(())
            }
            (Some(state), _) if spec.sort.is_none() => {
                spec.operand.visit(env, |value| state.add_and_measure(value, &[], times, heap))?
            }
            _ => spec.start_or_sort(gathered, id, env, times, heap),
        }
    }

    /// Evaluates the accumulator's operand and its other parameters for a document.
    pub(crate) fn read(&self, env: &Env<'_>) -> Result<(Option<OwnedValue>, Option<AccumulatorInput>)> {
        let spec = &*self.0;
        let n = spec.number(Value::NULL, env, NUMBER_CODES)?;
        let mut key = Vec::new();
        if let Some(sort) = &spec.sort {
            sort.key(env.root(), &mut key)?;
        }
        let value = spec.operand.visit(env, |value| value.map(Value::to_owned))?;
        if let (Some(direction), Some(value)) = (spec.value_order(), &value) {
            let compared = Compared::new(spec.collation.as_ref(), value.as_value());
            encode_directed(Some(compared.as_value()), direction, &mut key);
        }
        let input = (n.is_some() || !key.is_empty()).then(|| AccumulatorInput { key: key.into(), n: n.unwrap_or(1) });
        Ok((value, input))
    }

    /// Adds what [`read`](Self::read) has returned for a document.
    pub(crate) fn add_value(
        &self,
        gathered: &mut Gathered,
        value: Option<Value<'_>>,
        input: Option<&AccumulatorInput>,
    ) -> Result<()> {
        let state = gathered.0.get_or_insert_with(|| self.0.start(input.map_or(1, |input| input.n)));
        state.add(value, input.map_or(&[], |input| &input.key))
    }

    /// Returns whether the accumulator only counts documents: `$count`, or a `$sum` of a constant whole number.
    pub(crate) fn is_count(&self) -> bool {
        &*self.0.name == "$count"
            || &*self.0.name == "$sum" && matches!(self.0.constant, Some(Number::Int32(_) | Number::Int64(_)))
    }

    /// Returns `true` only if the documents may come in any order. `is_whole` returns whether a field is a whole number in each document, and equal numbers
    /// have the same type: sums of such numbers need no rounding.
    pub(crate) fn ignores_order(&self, is_whole: impl FnOnce(&FieldName) -> bool) -> bool {
        let is_of_field = || {
            matches!(&*self.0.name, "$sum" | "$avg" | "$min" | "$max")
                && self.0.operand.as_field().is_some_and(is_whole)
        };
        self.is_count() || is_of_field()
    }

    /// Returns whether the parameter `n`, as `$firstN` has it, is a constant, and not computed for each group.
    /// True for accumulators without `n`.
    pub(crate) fn has_constant_number(&self) -> bool {
        self.0.n.as_ref().is_none_or(|n| n.as_constant().is_some())
    }

    /// Returns the accumulator's name, if it is a standard deviation.
    pub(crate) fn deviation(&self) -> Option<&str> {
        Some(&*self.0.name).filter(|name| matches!(*name, "$stdDevPop" | "$stdDevSamp"))
    }

    /// Returns whether the states of two lists of documents can be [merged](Gathered::merged) into the state of both
    /// lists together.
    pub(crate) fn merges(&self) -> bool {
        self.0.start(1).copied().is_some()
    }

    /// Returns which documents decide the result for a window. `None` if all of them do.
    pub(crate) fn deciding(&self) -> Option<Deciding> {
        use DecidingOrder::{Documents, Keys};
        Some(match &*self.0.name {
            "$addToSet" => Deciding::Distinct,
            "$bottom" | "$bottomN" => Deciding::Last(Keys),
            "$first" | "$firstN" => Deciding::First(Documents),
            "$last" | "$lastN" => Deciding::Last(Documents),
            "$maxN" | "$minN" => Deciding::Extremes,
            "$median" | "$percentile" => Deciding::Ranks,
            "$top" | "$topN" => Deciding::First(Keys),
            _ => return None,
        })
    }

    /// Returns the result, which these values [decide](Self::deciding): the only one if the accumulator has one value, else all.
    ///
    /// # Errors
    /// Fails as [`check_size`](super::check_size) does.
    pub(crate) fn of_decided<'v>(
        &self,
        deciding: Deciding,
        values: impl Iterator<Item = Option<Value<'v>>>,
    ) -> Result<Evaluated<'static>> {
        let mut values = values.map(|value| value.unwrap_or(Value::NULL));
        let is_only = matches!(deciding, Deciding::First(_) | Deciding::Last(_)) && self.0.n.is_none();
        if is_only {
            return Ok(values.next().map_or(Evaluated::NULL, |only| Evaluated::Owned(only.to_owned())));
        }
        let mut all = Push::default();
        values.try_for_each(|value| all.add(Some(value), &[]))?;
        Ok(all.finish())
    }

    /// Returns the result of `$percentile` or `$median` over this number of sorted numbers.
    pub(crate) fn at_ranks(&self, count: usize, get: impl Fn(usize) -> Option<f64>) -> Evaluated<'static> {
        self.0.ranks.as_ref().unwrap_or(&Ranks::Median).at(count, get)
    }

    /// Returns the value for the documents of a group.
    pub fn finish(&self, gathered: &mut Gathered) -> Evaluated<'static> {
        match &mut gathered.0 {
            Some(state) => state.finish(),
            None => self.0.start(1).finish(),
        }
    }

    /// Returns whether the result depends on the first document alone, and no document makes the accumulator fail: a
    /// `$first` of a path or a constant.
    pub(crate) fn needs_first_only(&self) -> bool {
        &*self.0.name == "$first" && self.0.operand.is_infallible()
    }

    /// Returns `true` only if no document makes the accumulator fail.
    pub(crate) fn is_infallible(&self) -> bool {
        let takes_all = ["$addToSet", "$avg", "$count", "$first", "$last", "$max", "$min", "$push", "$sum"];
        takes_all.contains(&&*self.0.name) && self.0.operand.is_infallible()
    }

    /// Returns the field and direction of a `$min` or `$max` of a field: the result is the first value of the field in that direction that is not
    /// null. `None` for other accumulators.
    pub(crate) fn end(&self) -> Option<(&FieldName, Direction)> {
        let direction = match &*self.0.name {
            "$min" => Direction::Ascending,
            "$max" => Direction::Descending,
            _ => return None,
        };
        Some((self.0.operand.as_field()?, direction))
    }

    /// Calls `visit` with each top-level field of a document that the accumulator reads, and with `None` if it reads
    /// the whole document.
    pub fn visit_fields(&self, visit: &mut dyn FnMut(Option<&FieldName>)) {
        for (path, _) in self.0.sort.iter().flat_map(Sort::fields) {
            visit(path.parts().first().map(|part| FieldName::new(part.name())).as_ref());
        }
        self.0.operand.visit_fields(visit);
    }
}

/// The state of an accumulator for the documents of one group. It begins without documents.
#[derive(Debug, Default)]
pub struct Gathered(Option<Stored>);

/// The other parameters of a document, of accumulators that have any.
#[derive(Clone, Debug)]
pub(crate) struct AccumulatorInput {
    /// By which documents are ordered: the key of the accumulator's sort or, in `$addToSet`, `$maxN` and `$minN`, of the value.
    pub(crate) key: Box<[u8]>,
    /// The number of values of the result.
    pub(crate) n: usize,
}

impl Gathered {
    /// Returns the state for the values of both states. Only for accumulators that [merge](AccumulatorSpec::merges).
    pub(crate) fn merged(&self, other: &Self) -> Self {
        Self(match (&self.0, &other.0) {
            (Some(a), Some(b)) => a.merged(b),
            (Some(only), None) | (None, Some(only)) => only.copied(),
            (None, None) => None,
        })
    }

    /// Returns whether the accumulator is a `$min` or `$max` that has a value.
    pub(crate) fn has_value(&self) -> bool {
        matches!(&self.0, Some(Stored::Extreme(extreme)) if extreme.has_value())
    }
}

/// The documents of a window on which an accumulator's result depends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deciding {
    /// The first n in an order.
    First(DecidingOrder),
    /// The last n in an order.
    Last(DecidingOrder),
    /// The first n by their keys, of those whose value is neither null nor missing.
    Extremes,
    /// The first of those whose keys are equal, if they have a value.
    Distinct,
    /// The numbers at some ranks.
    Ranks,
}

impl Deciding {
    pub(crate) fn order(self) -> DecidingOrder {
        match self {
            Self::First(order) | Self::Last(order) => order,
            Self::Extremes | Self::Distinct => DecidingOrder::Keys,
            Self::Ranks => DecidingOrder::Numbers,
        }
    }

    /// Returns whether a document with this value counts.
    pub(crate) fn counts(self, value: Option<Value<'_>>) -> bool {
        match self {
            Self::First(_) | Self::Last(_) => true,
            Self::Extremes => value.is_some_and(|value| !value.is_nullish()),
            Self::Distinct => value.is_some(),
            Self::Ranks => percentile::number(value).is_some(),
        }
    }
}

/// An order of documents. Equal ones are in the order of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DecidingOrder {
    /// That of the window.
    Documents,
    /// By [`AccumulatorInput::key`].
    Keys,
    /// By their values as numbers.
    Numbers,
}

/// The three error codes for a parameter `n`: if it is not a number, not whole, not positive.
type NumberCodes = [i32; 3];

pub(in crate::expression) const NUMBER_CODES: NumberCodes = [5_787_902, 5_787_903, 5_787_908];

/// The codes in `$group`. MongoDB compiles the accumulators of groups, and compiled groups fail with one code in all three cases.
const IN_GROUP: NumberCodes = [7_548_606; 3];

/// Returns the parameter `n`, a number of values: a positive whole number.
pub(in crate::expression) fn number(name: &str, n: &Evaluated<'_>, codes: NumberCodes) -> Result<usize> {
    let [no_number, not_whole, not_positive] = codes;
    let value = n.as_value().filter(|value| Number::of(*value).is_some());
    let value = value.ok_or_else(|| Error::new(Code(no_number), format!("the parameter 'n' of {name} is a number")))?;
    let whole = Number::of(value).and_then(Number::to_i64);
    let whole =
        whole.ok_or_else(|| Error::new(Code(not_whole), format!("the parameter 'n' of {name} is a whole number")))?;
    usize::try_from(whole)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Error::new(Code(not_positive), format!("the parameter 'n' of {name} is positive")))
}

fn need(part: Option<Value<'_>>, name: &str, part_name: &str, code: i32, variables: &Variables) -> Result<Expression> {
    Expression::parse(operands::need(part, name, part_name, code)?, variables)
}
