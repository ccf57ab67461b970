//! Parses the argument of an `$addFields`.

use super::tree::{Action, Branch};
use crate::{
    Code, Error, Result,
    expression::{Expression, Variables},
    path::field_path,
    raw::{Doc, Element},
};

/// Parses the fields and their expressions.
///
/// # Errors
/// 40181 for an operator that is not the only field, 40176 for two fields on the same path, 40182 for a name beginning with `$` and
/// 40183 for a path in a nested document; those of paths and expressions.
pub(super) fn parse(spec: Doc<'_>, variables: &Variables) -> Result<Branch> {
    let mut root = Branch::default();
    for element in spec.elements() {
        let name = element.display_name();
        let names = field_path::names(&name)?;
        add(&mut root, &names, element, variables).map_err(|error| error.at(&*name))?;
    }
    Ok(root)
}

fn add(root: &mut Branch, names: &[&str], element: Element<'_>, variables: &Variables) -> Result<()> {
    let nested = element.value.as_document().map(|nested| (nested, nested.elements()));
    if let Some((nested, mut elements)) = nested
        && let Some(first) = elements.next()
    {
        if !first.name.starts_with(b"$") {
            for element in nested.elements() {
                let name = element.display_name();
                if name.starts_with('$') {
                    return Err(Error::new(Code(40_182), format!("the field name {name} begins with '$'")));
                }
                if name.contains('.') {
                    let message = format!("cannot use the dotted field name {name} in a sub object");
                    return Err(Error::new(Code(40_183), message));
                }
                let names: Vec<&str> = names.iter().copied().chain([&*name]).collect();
                add(root, &names, element, variables)?;
            }
            return Ok(());
        }
        if elements.next().is_some() {
            return Err(Error::new(Code(40_181), "an expression specification must contain exactly one field"));
        }
    }
    let expression = Expression::parse(element.value, variables)?;
    let collision = |error: Error| Error::new(Code(40_176), error.message());
    root.add(names, Action::Computed(expression)).map_err(collision)
}
