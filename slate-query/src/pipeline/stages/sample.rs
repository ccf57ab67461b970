//! `$sample`: passes on documents chosen at random.

use crate::{Code, Error, Result, expression::Bindings, number::Number, pipeline::Stage, raw::Value};

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let argument =
        argument.as_document().ok_or_else(|| refused(28_745, "the $sample stage specification must be an object"))?;
    let mut size = None;
    for element in argument.elements() {
        if element.name != b"size" {
            return Err(refused(28_748, "unrecognized option to $sample").at(&*element.display_name()));
        }
        let number = Number::of(element.value)
            .ok_or_else(|| refused(28_746, "size argument to $sample must be a number").at("size"))?;
        let whole = number.to_i64_truncating().and_then(|size| u64::try_from(size).ok()).filter(|&size| size > 0);
        size = Some(
            whole.ok_or_else(|| refused(28_747, "size argument to $sample must be a positive integer").at("size"))?,
        );
    }
    size.map(Stage::Sample).ok_or_else(|| refused(28_749, "$sample stage must specify a size"))
}
