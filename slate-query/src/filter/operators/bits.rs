use std::collections::BTreeMap;

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
    raw::{Doc, Kind, Value, Writer},
    work,
};

/// `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: bits of a whole number within int64, or of a binary.
///
/// A number is sign-extended, a binary is followed by zeros. As in MongoDB, the bits of the obsolete subtype 2 include its
/// inner length.
#[derive(Clone, Debug)]
struct Bits {
    test: Test,
    /// The tested bits, in words from the lowest; words without any are left out.
    words: Vec<Word>,
    /// The tested bits of a number. Positions of 63 and above read the sign.
    mask: u64,
}

/// The tested bits of the 64-bit word at position `at`.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: u32,
    mask: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

/// Up to this number of positions are listed one by one, even if a binary is shorter.
const MAX_LISTED: u64 = 4096;

impl Bits {
    fn new(test: Test, words: Vec<Word>) -> Self {
        let low = words.first().filter(|word| word.at == 0).map_or(0, |word| word.mask);
        let sign = u64::from(words.last().is_some_and(|word| word.at > 0)) << (u64::BITS - 1);
        Self { test, words, mask: low | sign }
    }

    /// Returns whether the test holds, given the mask and the set tested bits of each word.
    fn holds_of(&self, mut words: impl Iterator<Item = (u64, u64)>) -> bool {
        match self.test {
            Test::AllSet => words.all(|(mask, set)| set == mask),
            Test::AllClear => words.all(|(_, set)| set == 0),
            Test::AnySet => words.any(|(_, set)| set != 0),
            Test::AnyClear => words.any(|(mask, set)| set != mask),
        }
    }

    fn holds_of_number(&self, bits: u64) -> bool {
        self.holds_of(std::iter::once((self.mask, bits & self.mask)))
    }

    fn holds_of_bytes(&self, bytes: &[u8]) -> bool {
        let beyond = |word: &Word| usize::try_from(word.at).map_or(true, |at| at >= bytes.len().div_ceil(8));
        let is_tested_beyond = self.words.last().is_some_and(beyond);
        let within = self.words.iter().take_while(|word| !beyond(word)).map(|word| (word.mask, word.of(bytes)));
        // All words beyond the value are clear, so one of them is enough.
        self.holds_of(within.chain(is_tested_beyond.then_some((1, 0))))
    }

    /// Returns the number of tested bits.
    fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.mask.count_ones())).sum()
    }

    /// Appends the bits as a binary.
    fn append_mask(&self, name: &[u8], out: &mut Writer) {
        let mut mask = Vec::new();
        for word in &self.words {
            mask.resize(usize::try_from(word.at).unwrap_or_default().saturating_mul(8), 0);
            mask.extend_from_slice(&word.mask.to_le_bytes());
        }
        out.append_with(name, Kind::Binary, |out| {
            out.extend_from_slice(&u32::try_from(mask.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.push(0);
            out.extend_from_slice(&mask);
        });
    }
}

impl Word {
    /// Returns the set bits of a value among those of the word.
    fn of(&self, bytes: &[u8]) -> u64 {
        let start = usize::try_from(self.at).map_or(usize::MAX, |at| at.saturating_mul(8));
        word(bytes.get(start..).unwrap_or_default()) & self.mask
    }
}

/// Returns the first 64 bits, padded with zeros.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
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
        let name: &[u8] = match self.test {
            Test::AllSet => b"$bitsAllSet",
            Test::AllClear => b"$bitsAllClear",
            Test::AnySet => b"$bitsAnySet",
            Test::AnyClear => b"$bitsAnyClear",
        };
        let positions = self.len();
        // A listed position takes about 16 bytes.
        let is_shorter = self.words.last().is_some_and(|last| u64::from(last.at) * 8 < positions.saturating_mul(16));
        if positions > MAX_LISTED && is_shorter {
            return self.append_mask(name, out);
        }
        out.open_array(name);
        let words = self.words.iter();
        let positions = words.flat_map(|word| {
            let first = i64::from(word.at) * i64::from(u64::BITS);
            (0..u64::BITS).filter(|bit| word.mask >> bit & 1 == 1).map(move |bit| first + i64::from(bit))
        });
        for (index, position) in positions.enumerate() {
            out.append(index.to_string().as_bytes(), Value::new(Kind::Int64, &position.to_le_bytes()));
        }
        out.close();
    }
}

pub(super) fn parse(clause: Clause<'_>, test: Test) -> Result<Option<Node>> {
    let words = if let Some(array) = clause.operand.as_array() {
        of_positions(array).map_err(|error| clause.locate(error))?
    } else if let Some((_, mask)) = clause.operand.as_binary() {
        let words = (0..).zip(mask.chunks(8)).map(|(at, bytes)| Word { at, mask: word(bytes) });
        words.filter(|word| word.mask != 0).collect()
    } else if clause.operand.kind().is_number() {
        let mask = natural(clause.operand).map_err(|error| clause.locate(error))?;
        Some(Word { at: 0, mask }).filter(|word| word.mask != 0).into_iter().collect()
    } else {
        let message =
            format!("{} takes an Array, a number, or a BinData but received: {:?}", clause.path, clause.operand);
        return Err(clause.refuse(message));
    };
    Ok(Some(Node::field(clause.path, Bits::new(test, words))))
}

fn of_positions(positions: Doc<'_>) -> Result<Vec<Word>> {
    let mut words = BTreeMap::new();
    for value in positions.values() {
        work::take(work::PARSED)?;
        let position = position(value)?;
        *words.entry(position / u64::BITS).or_default() |= 1 << (position % u64::BITS);
    }
    Ok(words.into_iter().map(|(at, mask)| Word { at, mask }).collect())
}

fn position(value: Value<'_>) -> Result<u32> {
    let refuse = |why: &str| Error::new(Code::BAD_VALUE, format!("Failed to parse bit position. {why}"));
    let position = natural(value).map_err(|error| refuse(error.message()))?;
    let position = i32::try_from(position).map_err(|_| refuse("Cannot represent it in an int"))?;
    Ok(position.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_the_bits_say() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for _ in 0..2000 {
            let positions: Vec<u64> = (0..random() % 5).map(|_| random() % 200).collect();
            let bytes: Vec<u8> = (0..random() % 25).map(|_| if random() % 2 == 0 { 255 } else { 0 }).collect();
            let mut operand = Writer::new();
            for position in &positions {
                operand.append(b"", Value::new(Kind::Int64, &position.to_le_bytes()));
            }
            let words = of_positions(Doc::new(&operand.finish())).unwrap();
            let is_set = |position: &u64| {
                bytes.get(usize::try_from(position / 8).unwrap()).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
            };
            for (test, expected) in [
                (Test::AllSet, positions.iter().all(is_set)),
                (Test::AllClear, !positions.iter().any(is_set)),
                (Test::AnySet, positions.iter().any(is_set)),
                (Test::AnyClear, !positions.iter().all(is_set)),
            ] {
                let bits = Bits::new(test, words.clone());
                assert_eq!(bits.holds_of_bytes(&bytes), expected, "{bits:?} {bytes:?}");
                // A number repeats its sign.
                let number = random() << 33 | random();
                let is_set = |position: &u64| number >> (*position).min(63) & 1 == 1;
                let expected = match test {
                    Test::AllSet => positions.iter().all(is_set),
                    Test::AllClear => !positions.iter().any(is_set),
                    Test::AnySet => positions.iter().any(is_set),
                    Test::AnyClear => !positions.iter().all(is_set),
                };
                assert_eq!(bits.holds_of_number(number), expected, "{bits:?} {number:x}");
            }
        }
    }

    #[test]
    fn many_neighbouring_bits_are_written_as_a_binary() {
        let mut out = Writer::new();
        let words = (0..1000).map(|at| Word { at, mask: u64::MAX }).collect();
        Bits::new(Test::AnySet, words).write(&mut out);
        Bits::new(Test::AllSet, vec![Word { at: 1000, mask: 5 }]).write(&mut out);
        let written = out.finish();
        let written = Doc::new(&written);
        assert_eq!(written.get("$bitsAnySet").and_then(Value::as_binary), Some((0, [255; 8000].as_slice())));
        let positions = written.get("$bitsAllSet").and_then(Value::as_array).unwrap();
        assert_eq!(positions.values().map(|value| natural(value).unwrap()).collect::<Vec<_>>(), [64_000, 64_002]);
    }
}
