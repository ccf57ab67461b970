//! Numbers: int32, int64, double and decimal128, compared by exact mathematical value.

mod any;
mod arithmetic;
mod compare;
mod decimal;
mod division;
mod exact;
mod functions;
mod quad;
mod rounding;
mod sum;
mod text;

pub use any::{Number, truth};
pub use decimal::{Decimal, MAX_COEFFICIENT, MAX_EXPONENT, MIN_EXPONENT, Sign};
pub use functions::{Function, arc_tangent, power};
use quad::Quad;
pub use rounding::Rounding;
pub use sum::Sum;
pub use text::{NotDecimal, non_finite_name};

pub(crate) use any::TWO_63;
pub(crate) use compare::parts;
pub(crate) use decimal::digits;
pub(crate) use exact::{Exact, bracket_double};
