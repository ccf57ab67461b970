//! Functions of real numbers: powers, roots, logarithms, trigonometry. A decimal is computed as a double.

use super::{
    super::{Evaluated, arguments::Arguments},
    arithmetic::only_number,
};
use crate::{
    Code, Error, Result,
    number::{Decimal, Number},
};

/// The result as a double, or as a decimal if an operand is one.
fn result<'v>(value: f64, is_decimal: bool) -> Evaluated<'v> {
    if is_decimal { Number::Decimal(Decimal::from_f64(value).shortened()).into() } else { Evaluated::double(value) }
}

fn is_decimal(number: Number) -> bool {
    matches!(number, Number::Decimal(_))
}

/// Computes a function of one number.
fn unary<'v>(
    arguments: &Arguments<'_, 'v>,
    code: i32,
    function: impl FnOnce(f64) -> Result<f64>,
) -> Result<Evaluated<'v>> {
    match only_number(arguments, code)? {
        None => Ok(Evaluated::NULL),
        Some(number) => Ok(result(function(number.to_f64())?, is_decimal(number))),
    }
}

fn bounded(value: f64, is_inside: bool, name: &str, range: &str) -> Result<f64> {
    if is_inside || value.is_nan() {
        return Ok(value);
    }
    Err(Error::new(Code(50989), format!("cannot apply {name} to {value}: the value must be in {range}")))
}

macro_rules! real {
    ($($name:ident($code:literal) = $function:expr;)+) => {
        $(pub(super) fn $name<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
            let function: fn(f64) -> Result<f64> = $function;
            unary(&arguments, $code, function)
        })+
    };
}

real! {
    exp(28765) = |x| Ok(x.exp());
    sin(28765) = |x| bounded(x, x.is_finite(), "$sin", "(-inf,inf)").map(f64::sin);
    cos(28765) = |x| bounded(x, x.is_finite(), "$cos", "(-inf,inf)").map(f64::cos);
    tan(28765) = |x| bounded(x, x.is_finite(), "$tan", "(-inf,inf)").map(f64::tan);
    asin(28765) = |x| bounded(x, x.abs() <= 1.0, "$asin", "[-1,1]").map(f64::asin);
    acos(28765) = |x| bounded(x, x.abs() <= 1.0, "$acos", "[-1,1]").map(f64::acos);
    atan(28765) = |x| Ok(x.atan());
    sinh(28765) = |x| Ok(x.sinh());
    cosh(28765) = |x| Ok(x.cosh());
    tanh(28765) = |x| Ok(x.tanh());
    asinh(28765) = |x| Ok(libm::asinh(x));
    acosh(28765) = |x| bounded(x, x >= 1.0, "$acosh", "[1,inf]").map(libm::acosh);
    atanh(28765) = |x| bounded(x, x.abs() <= 1.0, "$atanh", "[-1,1]").map(libm::atanh);
    degrees_to_radians(28765) = |x| Ok(x.to_radians());
    radians_to_degrees(28765) = |x| Ok(x.to_degrees());
    sigmoid(14) = |x| Ok(1.0 / (1.0 + (-x).exp()));
    ln(28765) = |x| positive(x, 28766, "$ln").map(f64::ln);
    log10(28765) = |x| positive(x, 28761, "$log10").map(f64::log10);
}

fn positive(value: f64, code: i32, name: &str) -> Result<f64> {
    if value > 0.0 || value.is_nan() {
        return Ok(value);
    }
    Err(Error::new(Code(code), format!("{name} takes a positive number, not {value}")))
}

pub(super) fn sqrt<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some(number) = only_number(&arguments, 28765)? else { return Ok(Evaluated::NULL) };
    if !number.is_nan() && number.signum().is_lt() {
        return Err(Error::new(Code(28714), "$sqrt takes a number that is not negative"));
    }
    Ok(match number {
        Number::Decimal(decimal) => Number::Decimal(decimal.sqrt()).into(),
        number => Evaluated::double(number.to_f64().sqrt()),
    })
}

pub(super) fn atan2<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let [left, right] = [arguments.get(0), arguments.get(1)];
    let (Some(a), Some(b)) = (left.present(), right.present()) else { return Ok(Evaluated::NULL) };
    let number = |value, operand, code| Number::of(value).ok_or_else(|| arguments.wrong_type(code, "numbers", operand));
    let (a, b) = (number(a, left, 51044)?, number(b, right, 51045)?);
    Ok(result(a.to_f64().atan2(b.to_f64()), is_decimal(a) || is_decimal(b)))
}

pub(super) fn log<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let [left, right] = [arguments.get(0), arguments.get(1)];
    let (Some(a), Some(b)) = (left.present(), right.present()) else { return Ok(Evaluated::NULL) };
    let number = |value, operand, code| Number::of(value).ok_or_else(|| arguments.wrong_type(code, "numbers", operand));
    let (number, base) = (number(a, left, 28756)?, number(b, right, 28757)?);
    let (x, y) = (number.to_f64(), base.to_f64());
    let x = positive(x, 28758, "$log")?;
    if !(y > 0.0 && y != 1.0 || y.is_nan()) {
        return Err(Error::new(Code(28759), format!("the base of $log is a positive number other than 1, not {y}")));
    }
    Ok(result(x.ln() / y.ln(), is_decimal(number) || is_decimal(base)))
}

pub(super) fn pow<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let [left, right] = [arguments.get(0), arguments.get(1)];
    let (Some(a), Some(b)) = (left.present(), right.present()) else { return Ok(Evaluated::NULL) };
    let number = |value, operand, code| Number::of(value).ok_or_else(|| arguments.wrong_type(code, "numbers", operand));
    let (base, exponent) = (number(a, left, 28762)?, number(b, right, 28763)?);
    if base == Number::Int32(0) && exponent.signum().is_lt() && !exponent.is_nan() {
        return Err(Error::new(Code(28764), "$pow cannot raise 0 to a negative exponent"));
    }
    let is_long = matches!(base, Number::Int64(_)) || matches!(exponent, Number::Int64(_));
    let whole = match (base, exponent) {
        (Number::Int32(_) | Number::Int64(_), Number::Int32(_) | Number::Int64(_)) => {
            base.to_i64().zip(exponent.to_i64()).and_then(|(base, exponent)| power(base, exponent))
        }
        _ => None,
    };
    Ok(match whole {
        Some(whole) => match i32::try_from(whole) {
            Ok(small) if !is_long => Evaluated::int32(small),
            _ => Evaluated::int64(whole),
        },
        None => match base {
            Number::Decimal(decimal) if exponent.to_i64().is_some_and(|by| (0..=1_000).contains(&by)) => {
                let by = exponent.to_i64().unwrap_or_default();
                let product = (0..by).fold(Decimal::from(1), |product, _| product.multiply(decimal));
                Number::Decimal(product.lengthened()).into()
            }
            _ => result(base.to_f64().powf(exponent.to_f64()), is_decimal(base) || is_decimal(exponent)),
        },
    })
}

/// The power of an integer, if it is an int64.
fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
