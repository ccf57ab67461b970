use std::fmt;

use super::{Env, Evaluated, Expression, node::count};
use crate::{Code, Error, Result, collation::Collation, held::Held, raw::Value, work};

/// An operator whose operands are all evaluated before it.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The least and the greatest number of operands.
    pub(super) arity: (usize, usize),
    pub(super) call: FunctionBody,
    pub(super) operands: Operands,
    pub(super) null_ends: NullEnds,
    /// The position and error code of an operand that must be an array: the expression is refused if this operand is a constant of another type
    /// while others depend on a document.
    pub(super) constant_array: Option<(usize, i32)>,
}

/// How the operands of a function are prepared, and which constant ones are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    AsWritten,
    /// The function compares its operands and returns none of them. With a collation, their strings are replaced by sort keys first.
    Compared,
    /// Constants before the first operand that is not constant are combined: the order of the operands is significant for the
    /// type of the result and for rounding.
    LeftToRight,
    /// Neighbouring constants are combined.
    Grouped,
    /// The order of the operands is not significant: all constants are combined and come last.
    ConstantsLast,
    /// As `ConstantsLast`, but a single operand that is an array stands for its elements.
    Accumulated,
}

/// Whether an operand that is missing, null or undefined makes the result null. The operands after it are not evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NullEnds {
    /// The function decides, with all operands evaluated.
    Never,
    AtFirst,
    Anywhere,
}

/// Computes the value of a function from the values of its operands.
pub(super) type FunctionBody = for<'v> fn(Arguments<'_, 'v>) -> Result<Evaluated<'v>>;

/// Any number of operands.
pub(super) const ANY: (usize, usize) = (0, usize::MAX);

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// Fails with 16020 or 28667 on a wrong number of operands.
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

    /// Returns whether nested calls of the function are one call: `f(f(a, b), c)` is parsed as `f(a, b, c)`. `operands`
    /// is the number of the inner call's operands.
    pub(super) fn is_flattened(&self, operands: usize) -> bool {
        match self.operands {
            Operands::Grouped | Operands::ConstantsLast => true,
            Operands::Accumulated => operands > 1,
            Operands::AsWritten | Operands::Compared | Operands::LeftToRight => false,
        }
    }

    pub(super) fn call<'v>(&self, operands: &'v [Expression], env: &Env<'v>) -> Result<Evaluated<'v>> {
        work::take(1)?;
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
        let mut held = Held::default();
        for (place, (value, operand)) in values.iter_mut().zip(operands).enumerate() {
            work::take(1)?;
            *value = operand.evaluate(env)?;
            value.as_value().map_or(Ok(()), count)?;
            held.add(value.heap_bytes())?;
            let ends = match self.null_ends {
                NullEnds::Never => false,
                NullEnds::AtFirst => place == 0,
                NullEnds::Anywhere => true,
            };
            if ends && value.is_nullish() {
                // The operands before it may have a wrong type, so the function is called; those after it are missing.
                break;
            }
            if let (Operands::Compared, Some(collation)) = (self.operands, env.collation())
                && let Some(compared) = value.as_value()
            {
                let compared = Evaluated::Owned(collation.apply(compared));
                held.add(compared.heap_bytes())?;
                *value = compared;
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

    /// Removes and returns the operand at that position; missing if there are fewer.
    pub(super) fn take(&mut self, place: usize) -> Evaluated<'v> {
        self.values.get_mut(place).map_or(Evaluated::Missing, |value| std::mem::replace(value, Evaluated::Missing))
    }

    /// Returns whether an operand is missing, null or undefined.
    pub(super) fn has_null(&self) -> bool {
        self.values.iter().any(Evaluated::is_nullish)
    }

    /// Returns the operand at that position, converted by `read`.
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
