use std::fmt;

use super::{Env, Evaluated, Expression};
use crate::{Code, Error, Result, collation::Collation, raw::Value};

/// An operator whose operands are all evaluated before it.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The least and the greatest number of operands.
    pub(super) arity: (usize, usize),
    pub(super) call: Call,
    pub(super) operands: Operands,
}

/// How a function gets its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    AsWritten,
    /// The function compares its operands and returns none of them: with a collation it is called with replaced strings.
    Compared,
    /// The order of the operands is not significant. Constants come last, as in MongoDB: the order decides whether the result is null or
    /// an error.
    ConstantsLast,
}

/// Computes the value of a function from the values of its operands.
pub(super) type Call = for<'v> fn(Arguments<'_, 'v>) -> Result<Evaluated<'v>>;

/// Any number of operands.
pub(super) const ANY: (usize, usize) = (0, usize::MAX);

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// # Errors
    /// 16020 or 28667 for a wrong number of operands.
    pub(super) fn check(&self, operands: usize) -> Result<()> {
        let (least, most) = self.arity;
        if (least..=most).contains(&operands) {
            return Ok(());
        }
        let name = self.name;
        Err(if least == most {
            let message = format!("expression {name} takes exactly {least} arguments, {operands} were given");
            Error::new(Code(16020), message)
        } else {
            let message = format!("expression {name} takes {least} to {most} arguments, {operands} were given");
            Error::new(Code(28667), message)
        })
    }

    pub(super) fn call<'v>(&self, operands: &'v [Expression], env: &Env<'v>) -> Result<Evaluated<'v>> {
        // Most functions have up to three operands, which need no allocation.
        let mut few = [const { Evaluated::Missing }; 3];
        let mut many = Vec::new();
        let values = match few.get_mut(..operands.len()) {
            Some(few) => few,
            None => {
                many.resize(operands.len(), Evaluated::Missing);
                &mut many[..]
            }
        };
        for (value, operand) in values.iter_mut().zip(operands) {
            *value = operand.evaluate(env)?;
            if let (Operands::Compared, Some(collation)) = (self.operands, env.collation())
                && let Some(compared) = value.as_value()
            {
                *value = Evaluated::Owned(collation.apply(compared));
            }
        }
        (self.call)(Arguments { name: self.name, values, collation: env.collation() })
    }
}

/// The values of a function's operands.
pub(super) struct Arguments<'c, 'v> {
    /// The function's name, for messages.
    pub(super) name: &'static str,
    pub(super) values: &'c mut [Evaluated<'v>],
    /// How strings are compared, for functions that return a value that they compare.
    pub(super) collation: Option<&'v Collation>,
}

impl<'c, 'v> Arguments<'c, 'v> {
    /// Returns the operand at that position; missing if there are fewer.
    pub(super) fn get(&self, place: usize) -> &Evaluated<'v> {
        self.values.get(place).unwrap_or(const { &Evaluated::Missing })
    }

    /// Takes the operand at that position.
    pub(super) fn take(&mut self, place: usize) -> Evaluated<'v> {
        self.values.get_mut(place).map_or(Evaluated::Missing, |value| std::mem::replace(value, Evaluated::Missing))
    }

    /// Returns whether an operand is missing, null or undefined.
    pub(super) fn has_null(&self) -> bool {
        self.values.iter().any(Evaluated::is_nullish)
    }

    /// Returns what `read` makes of the operand at that position.
    ///
    /// # Errors
    /// `code` if it is missing, or not what `read` expects.
    pub(super) fn read<'a, T>(
        &'a self,
        place: usize,
        read: impl FnOnce(Value<'a>) -> Option<T>,
        code: i32,
        expected: &str,
    ) -> Result<T> {
        let operand = self.get(place);
        operand.as_value().and_then(read).ok_or_else(|| self.wrong_type(code, expected, operand))
    }

    /// Like [`read`](Self::read), but returns `None` for an operand that is missing, null or undefined.
    pub(super) fn read_present<'a, T>(
        &'a self,
        place: usize,
        read: impl FnOnce(Value<'a>) -> Option<T>,
        code: i32,
        expected: &str,
    ) -> Result<Option<T>> {
        if self.get(place).is_nullish() { Ok(None) } else { self.read(place, read, code, expected).map(Some) }
    }

    /// Returns the error for an operand of a wrong type.
    pub(super) fn wrong_type(&self, code: i32, expected: &str, value: &Evaluated<'_>) -> Error {
        wrong_type(self.name, code, expected, value)
    }
}

/// Returns the error for an operand of a wrong type.
pub(super) fn wrong_type(name: &str, code: i32, expected: &str, value: &Evaluated<'_>) -> Error {
    let found = value.as_value().map_or("missing", |value| value.kind().alias());
    Error::new(Code(code), format!("{name} takes {expected}, not {found}"))
}
