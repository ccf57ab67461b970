use super::super::{
    Node,
    bounds::{Bounds, encode},
    clause::{Clause, natural},
    operator::{Operator, Rank, Reach},
};
use crate::{
    Result,
    interval::Interval,
    raw::{Kind, Value, Writer},
};

/// `$size`: the value is an array of this length.
#[derive(Clone, Copy, Debug)]
struct Size(u32);

impl Operator for Size {
    fn holds(&self, value: Value<'_>) -> bool {
        value.as_array().is_some_and(|array| {
            let wanted = self.0 as usize;
            array.elements().take(wanted.saturating_add(1)).count() == wanted
        })
    }

    fn reach(&self) -> Reach {
        Reach::Whole
    }

    fn bounds(&self) -> Bounds {
        match self.0 {
            // An empty array has the key of undefined.
            0 => Bounds::loose(Interval::point(encode(Value::UNDEFINED))),
            _ => Bounds::unknown(),
        }
    }

    fn rank(&self) -> Rank {
        Rank::Size
    }

    fn write(&self, out: &mut Writer) {
        out.append(b"$size", Value::new(Kind::Int64, &i64::from(self.0).to_le_bytes()));
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let refuse = |why: &str| clause.refuse(format!("Failed to parse $size. {why}"));
    let size = natural(clause.operand).map_err(|error| refuse(error.message()))?;
    let size = u32::try_from(size)
        .ok()
        .filter(|&size| i32::try_from(size).is_ok())
        .ok_or_else(|| refuse(&format!("Cannot represent in an int: {:?}", clause.operand)))?;
    Ok(Some(Node::field(clause.path, Size(size))))
}
