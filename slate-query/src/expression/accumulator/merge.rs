use std::collections::HashMap;

use super::AccumulatorState;
use crate::{
    Result,
    expression::{Evaluated, arguments::wrong_type},
    raw::{OwnedValue, SmallBytes, Value, Writer},
};

/// `$mergeObjects`: the fields of all documents; a later value replaces an earlier one.
#[derive(Debug, Default)]
pub(super) struct MergeObjects {
    places: HashMap<SmallBytes, usize, ahash::RandomState>,
    fields: Vec<(SmallBytes, OwnedValue)>,
    bytes: usize,
}

impl AccumulatorState for MergeObjects {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        let Some(value) = value.filter(|value| !value.is_nullish()) else {
            return Ok(());
        };
        let document = value
            .as_document()
            .ok_or_else(|| wrong_type("$mergeObjects", 5_911_200, "documents", &Evaluated::Borrowed(value)))?;
        for element in document.elements() {
            let name = SmallBytes::from(element.name);
            self.bytes += element.value.bytes().len();
            let place = self.places.get(&name).and_then(|place| self.fields.get_mut(*place));
            match place {
                Some((_, value)) => *value = element.value.to_owned(),
                None => {
                    self.bytes += 3 * (name.len() + size_of::<SmallBytes>());
                    self.places.insert(name.clone(), self.fields.len());
                    self.fields.push((name, element.value.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        1
    }

    fn finish(&mut self) -> Evaluated<'static> {
        let mut writer = Writer::new();
        self.fields.iter().for_each(|(name, value)| writer.append(name, value.as_value()));
        Evaluated::document(writer)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
