use super::{
    super::{bucket, group},
    BucketAuto,
    granularity::Granularity,
};
use crate::{
    Code, Error, Result,
    expression::Bindings,
    number::Number,
    pipeline::Stage,
    raw::{Doc, Value, Writer},
};

pub(in crate::pipeline::stages) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let options =
        argument.as_document().ok_or_else(|| refused(40_240, "the argument to $bucketAuto must be an object"))?;
    let (mut group_by, mut buckets, mut output, mut granularity) = (None, None, None, None);
    for element in options.elements() {
        match element.name {
            b"groupBy" => group_by = Some(bucket::check_group_by(element.value, 40_239)?),
            b"buckets" => buckets = Some(number_of_buckets(element.value)?),
            b"output" => {
                let fields = element.value.as_document();
                output =
                    Some(fields.ok_or_else(|| refused(40_244, "the $bucketAuto 'output' field must be an object"))?);
            }
            b"granularity" => {
                let name = element.value.as_str();
                let name =
                    name.ok_or_else(|| refused(40_261, "the $bucketAuto 'granularity' field must be a string"))?;
                let series = Granularity::parse(name);
                granularity = Some(series.ok_or_else(|| {
                    Error::new(Code(40_257), format!("unknown rounding granularity of $bucketAuto: '{name}'"))
                })?);
            }
            _ => {
                let message = format!("unrecognized option to $bucketAuto: {}", element.display_name());
                return Err(Error::new(Code(40_245), message));
            }
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(refused(40_246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
    };
    let mut spec = Writer::new();
    spec.append(b"_id", group_by);
    // An empty output means the default one.
    bucket::write_output(&mut spec, output.filter(|output| !output.is_empty()));
    let group = group::parse_group(Doc::new(&spec.finish()), bindings)?;
    if !group.has_constant_numbers() {
        return Err(refused(4_544_714, "the parameter 'n' of an accumulator of $bucketAuto must be constant"));
    }
    Ok(Stage::BucketAuto(BucketAuto { group, buckets, granularity, argument: argument.to_owned() }))
}

fn number_of_buckets(value: Value<'_>) -> Result<u64> {
    let refused = |code, message: &'static str| Error::new(Code(code), message);
    let number =
        Number::of(value).ok_or_else(|| refused(40_241, "the $bucketAuto 'buckets' field must be a number"))?;
    let whole = number.to_i64().and_then(|whole| i32::try_from(whole).ok());
    let whole = whole.ok_or_else(|| refused(40_242, "the $bucketAuto 'buckets' field must be a 32-bit integer"))?;
    let whole = u64::try_from(whole).ok().filter(|whole| *whole > 0);
    whole.ok_or_else(|| refused(40_243, "the $bucketAuto 'buckets' field must be greater than 0"))
}
