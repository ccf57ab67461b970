use super::super::{
    Node,
    bounds::{Bounds, of_bracket},
    clause::{Clause, natural},
    operator::{Operator, Rank},
};
use crate::{
    Code, Error, Result,
    number::Number,
    order::Bracket,
    raw::{Kind, Value, Writer},
};

/// `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: bits of a whole number within int64, or of a binary.
///
/// A number is sign-extended, a binary is followed by zeros. As in MongoDB, the bits of the obsolete subtype 2 include its
/// inner length.
#[derive(Clone, Debug)]
struct Bits {
    test: Test,
    /// The bit positions from the lowest bit, ascending, without duplicates.
    positions: Vec<u32>,
    /// The positions as a mask. Positions of 63 and above read the sign.
    mask: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl Bits {
    fn new(test: Test, mut positions: Vec<u32>) -> Self {
        positions.sort_unstable();
        positions.dedup();
        let mask = positions.iter().fold(0, |mask, &position| mask | 1 << position.min(u64::BITS - 1));
        Self { test, positions, mask }
    }

    fn holds_of_number(&self, bits: u64) -> bool {
        match self.test {
            Test::AllSet => bits & self.mask == self.mask,
            Test::AllClear => bits & self.mask == 0,
            Test::AnySet => bits & self.mask != 0,
            Test::AnyClear => bits & self.mask != self.mask,
        }
    }

    fn holds_of_bytes(&self, bytes: &[u8]) -> bool {
        let set = |position: &u32| bit(bytes, *position);
        match self.test {
            Test::AllSet => self.positions.iter().all(set),
            Test::AllClear => !self.positions.iter().any(set),
            Test::AnySet => self.positions.iter().any(set),
            Test::AnyClear => !self.positions.iter().all(set),
        }
    }
}

fn bit(bytes: &[u8], position: u32) -> bool {
    let byte = usize::try_from(position / 8).ok().and_then(|place| bytes.get(place));
    byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}

impl Operator for Bits {
    fn holds(&self, value: Value<'_>) -> bool {
        if let Some((_, bytes)) = value.as_binary() {
            return self.holds_of_bytes(bytes);
        }
        let number = Number::of(value).and_then(Number::to_i64);
        number.is_some_and(|number| self.holds_of_number(number.cast_unsigned()))
    }

    fn bounds(&self) -> Bounds {
        Bounds::loose(of_bracket(Bracket::Number).union(&of_bracket(Bracket::Binary)))
    }

    fn rank(&self) -> Rank {
        match self.test {
            Test::AllSet => Rank::BitsAllSet,
            Test::AllClear => Rank::BitsAllClear,
            Test::AnySet => Rank::BitsAnySet,
            Test::AnyClear => Rank::BitsAnyClear,
        }
    }

    fn write(&self, out: &mut Writer) {
        out.open_array(match self.test {
            Test::AllSet => b"$bitsAllSet",
            Test::AllClear => b"$bitsAllClear",
            Test::AnySet => b"$bitsAnySet",
            Test::AnyClear => b"$bitsAnyClear",
        });
        for (index, position) in self.positions.iter().enumerate() {
            let position = i64::from(*position).to_le_bytes();
            out.append(index.to_string().as_bytes(), Value::new(Kind::Int64, &position));
        }
        out.close();
    }
}

pub(super) fn parse(clause: Clause<'_>, test: Test) -> Result<Option<Node>> {
    let positions = if let Some(array) = clause.operand.as_array() {
        array.values().map(position).collect::<Result<Vec<_>>>().map_err(|error| clause.locate(error))?
    } else if let Some((_, mask)) = clause.operand.as_binary() {
        let bits = u32::try_from(mask.len().saturating_mul(8)).unwrap_or(u32::MAX);
        (0..bits).filter(|&position| bit(mask, position)).collect()
    } else if clause.operand.kind().is_number() {
        let mask = natural(clause.operand).map_err(|error| clause.locate(error))?;
        (0..u64::BITS).filter(|position| mask >> position & 1 == 1).collect()
    } else {
        let message =
            format!("{} takes an Array, a number, or a BinData but received: {:?}", clause.path, clause.operand);
        return Err(clause.refuse(message));
    };
    Ok(Some(Node::field(clause.path, Bits::new(test, positions))))
}

fn position(value: Value<'_>) -> Result<u32> {
    let refuse = |why: &str| Error::new(Code::BAD_VALUE, format!("Failed to parse bit position. {why}"));
    let position = natural(value).map_err(|error| refuse(error.message()))?;
    let position = i32::try_from(position).map_err(|_| refuse("Cannot represent it in an int"))?;
    Ok(position.unsigned_abs())
}
