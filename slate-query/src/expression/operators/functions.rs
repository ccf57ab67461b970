//! Functions of real numbers: powers, roots, logarithms, trigonometry. Decimals are computed with 34 digits.

use super::{
    super::{
        Evaluated, Expression, Variables,
        arguments::{self, Arguments, NullEnds, Operands},
        fold,
    },
    arithmetic::{first_number, two_numbers},
};
use crate::{
    Code, Error, Result,
    number::{self, Decimal, Function, Number},
    raw::Value,
};

/// A function of one number, as an implementation for doubles and one for decimals.
struct Real {
    double: fn(f64) -> f64,
    decimal: fn(Decimal) -> Option<Decimal>,
    /// Whether a number is in the function's domain, which `range` describes in messages.
    domain: fn(f64) -> bool,
    range: &'static str,
}

impl Real {
    fn of<'v>(&self, arguments: &Arguments<'_, 'v>, code: i32) -> Result<Evaluated<'v>> {
        let Some(number) = first_number(arguments, code)? else { return Ok(Evaluated::NULL) };
        let refused = || {
            let (name, range) = (arguments.name, self.range);
            let value = number.to_f64();
            Error::new(Code(50989), format!("cannot apply {name} to {value}: the value must be in {range}"))
        };
        if !number.is_nan() && !(self.domain)(number.to_f64()) {
            return Err(refused());
        }
        Ok(match number {
            Number::Decimal(decimal) => Number::Decimal((self.decimal)(decimal).ok_or_else(refused)?).into(),
            number => Evaluated::double((self.double)(number.to_f64())),
        })
    }
}

macro_rules! real {
    ($($name:ident($code:literal, $range:literal, $domain:expr) = $double:expr, $decimal:expr;)+) => {
        $(pub(super) fn $name<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
            let function = Real { double: $double, decimal: $decimal, domain: $domain, range: $range };
            function.of(&arguments, $code)
        })+
    };
}

real! {
    exp(28765, "(-inf,inf)", |_| true) = f64::exp, |x| Function::Exp.of(x);
    sin(28765, "(-inf,inf)", f64::is_finite) = f64::sin, |x| Function::Sin.of(x);
    cos(28765, "(-inf,inf)", f64::is_finite) = f64::cos, |x| Function::Cos.of(x);
    tan(28765, "(-inf,inf)", f64::is_finite) = f64::tan, |x| Function::Tan.of(x);
    asin(28765, "[-1,1]", |x| x.abs() <= 1.0) = f64::asin, |x| Function::Asin.of(x);
    acos(28765, "[-1,1]", |x| x.abs() <= 1.0) = f64::acos, |x| Function::Acos.of(x);
    atan(28765, "[-inf,inf]", |_| true) = f64::atan, |x| Function::Atan.of(x);
    sinh(28765, "[-inf,inf]", |_| true) = f64::sinh, |x| Function::Sinh.of(x);
    cosh(28765, "[-inf,inf]", |_| true) = f64::cosh, |x| Function::Cosh.of(x);
    tanh(28765, "[-inf,inf]", |_| true) = f64::tanh, |x| Function::Tanh.of(x);
    asinh(28765, "[-inf,inf]", |_| true) = libm::asinh, |x| Function::Asinh.of(x);
    acosh(28765, "[1,inf]", |x| x >= 1.0) = libm::acosh, |x| Function::Acosh.of(x);
    atanh(28765, "[-1,1]", |x| x.abs() <= 1.0) = libm::atanh, |x| Function::Atanh.of(x);
    degrees_to_radians(28765, "[-inf,inf]", |_| true) = f64::to_radians, |x| Some(x.multiply(RADIANS_PER_DEGREE));
    radians_to_degrees(28765, "[-inf,inf]", |_| true) = f64::to_degrees, |x| Some(x.multiply(DEGREES_PER_RADIAN));
    sigmoid(14, "[-inf,inf]", |_| true) = |x| 1.0 / (1.0 + (-x).exp()), decimal_sigmoid;
}

/// π / 180.
const RADIANS_PER_DEGREE: Decimal = positive_decimal(1_745_329_251_994_329_576_923_690_768_488_613, -35);
/// 180 / π.
const DEGREES_PER_RADIAN: Decimal = positive_decimal(5_729_577_951_308_232_087_679_815_481_410_517, -32);

const fn positive_decimal(coefficient: u128, exponent: i32) -> Decimal {
    Decimal::Finite { sign: number::Sign::Positive, coefficient, exponent }
}

static SIGMOID: arguments::Function = arguments::Function {
    name: "$sigmoid",
    arity: (1, 1),
    call: sigmoid,
    operands: Operands::AsWritten,
    null_ends: NullEnds::Never,
    constant_array: None,
};

/// Parses `$sigmoid`, whose operand is one expression: an array is not a list of operands.
pub(super) fn parse_sigmoid(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let operand = Expression::parse(operand, variables)?;
    fold::call(&SIGMOID, vec![operand], variables)
}

/// Computes the sigmoid of a decimal. Rounds to 34 digits at each step, as MongoDB does.
fn decimal_sigmoid(x: Decimal) -> Option<Decimal> {
    let one = Decimal::from(1);
    Some(one.divide(one.add(Function::Exp.of(x.negated())?)))
}

fn logarithm<'v>(
    arguments: &Arguments<'_, 'v>,
    code: i32,
    double: fn(f64) -> f64,
    decimal: Function,
) -> Result<Evaluated<'v>> {
    let Some(number) = first_number(arguments, 28765)? else { return Ok(Evaluated::NULL) };
    check_positive(number, code, arguments.name)?;
    Ok(match number {
        // As in MongoDB, the logarithm of NaN is a double, whatever its type.
        Number::Decimal(x) if !x.is_nan() => Number::Decimal(decimal.of(x).unwrap_or(Decimal::Nan)).into(),
        number => Evaluated::double(double(number.to_f64())),
    })
}

pub(super) fn ln<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    logarithm(&arguments, 28766, f64::ln, Function::Ln)
}

pub(super) fn log10<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    logarithm(&arguments, 28761, f64::log10, Function::Log10)
}

fn check_positive(number: Number, code: i32, name: &str) -> Result<()> {
    if number.is_nan() || number.signum().is_gt() {
        return Ok(());
    }
    Err(Error::new(Code(code), format!("{name} takes a positive number, not {}", number.to_f64())))
}

fn is_decimal(number: Number) -> bool {
    matches!(number, Number::Decimal(_))
}

pub(super) fn sqrt<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some(number) = first_number(&arguments, 28765)? else { return Ok(Evaluated::NULL) };
    if !number.is_nan() && number.signum().is_lt() {
        return Err(Error::new(Code(28714), "$sqrt takes a number that is not negative"));
    }
    Ok(match number {
        Number::Decimal(decimal) => Number::Decimal(decimal.sqrt()).into(),
        number => Evaluated::double(number.to_f64().sqrt()),
    })
}

pub(super) fn atan2<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some([y, x]) = two_numbers(&arguments, [51044, 51045])? else { return Ok(Evaluated::NULL) };
    Ok(if is_decimal(y) || is_decimal(x) {
        Number::Decimal(number::arc_tangent(y.to_decimal(), x.to_decimal())).into()
    } else {
        Evaluated::double(y.to_f64().atan2(x.to_f64()))
    })
}

pub(super) fn log<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some([number, base]) = two_numbers(&arguments, [28756, 28757])? else { return Ok(Evaluated::NULL) };
    check_positive(number, 28758, "$log")?;
    let is_one = base.minus(Number::Int32(1)).signum().is_eq();
    if !base.is_nan() && (!base.signum().is_gt() || is_one) {
        let base = base.to_f64();
        return Err(Error::new(Code(28759), format!("the base of $log is a positive number other than 1, not {base}")));
    }
    // As in MongoDB, the logarithm of NaN is a double, whatever its type.
    if (!is_decimal(number) && !is_decimal(base)) || number.is_nan() || base.is_nan() {
        return Ok(Evaluated::double(number.to_f64().ln() / base.to_f64().ln()));
    }
    // Rounds to 34 digits at each step, as MongoDB does.
    let ln = |number: Number| Number::Decimal(Function::Ln.of(number.to_decimal()).unwrap_or(Decimal::Nan));
    Ok(ln(number).over(ln(base)).into())
}

pub(super) fn pow<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some([base, exponent]) = two_numbers(&arguments, [28762, 28763])? else { return Ok(Evaluated::NULL) };
    // As in MongoDB, the sign of a decimal exponent decides, even of a zero.
    let is_negative = match exponent {
        Number::Decimal(exponent) => exponent.is_negative(),
        Number::Double(exponent) if is_decimal(base) => exponent.is_sign_negative() && !exponent.is_nan(),
        exponent => exponent.signum().is_lt() && !exponent.is_nan(),
    };
    if base == Number::Int32(0) && is_negative {
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
        None if is_decimal(base) || is_decimal(exponent) => {
            Number::Decimal(number::power(base.to_decimal(), exponent.to_decimal())).into()
        }
        None => Evaluated::double(base.to_f64().powf(exponent.to_f64())),
    })
}

/// Returns the power of an integer, if it is an int64.
fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) | (_, 0) => Some(1),
        (0, 1..) => Some(0),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
