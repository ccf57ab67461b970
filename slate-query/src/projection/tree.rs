use super::{
    additions::{Addition, Additions},
    slice::Slice,
};
use crate::{Code, Error, Result, expression::Expression, filter::Filter, named_list::NamedList};

/// The action of a projection on one path.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Include,
    Exclude,
    Slice(Slice),
    /// Shows the element of this field that the filter of an `$elemMatch` matches.
    ElemMatch(Box<Filter>),
    Positional,
    /// The field is set to the value of an expression.
    Computed(Expression),
    Within(Branch),
}

/// The paths of a projection document as a tree, in their original order.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    pub(super) fields: NamedList<Box<str>, Action>,
}

impl Branch {
    /// Adds an action at a path.
    ///
    /// # Errors
    /// 31250 if the path, or a longer path, already has an action; 31249 if a prefix of it has.
    pub(super) fn add(&mut self, names: &[&str], action: Action) -> Result<()> {
        let Some((name, rest)) = names.split_first() else { return Ok(()) };
        if !rest.is_empty() {
            return self.within(name)?.add(rest, action);
        }
        if self.fields.get(name.as_bytes()).is_some() {
            return Err(Error::new(Code(31250), format!("path collision at {name}")));
        }
        self.fields.push((*name).into(), action);
        Ok(())
    }

    /// Returns the branch at a path, created if necessary.
    ///
    /// # Errors
    /// 31249 and 31250 as [`Branch::add`].
    pub(super) fn branch(&mut self, names: &[&str]) -> Result<&mut Self> {
        let Some((name, rest)) = names.split_first() else { return Ok(self) };
        if rest.is_empty()
            && matches!(self.fields.get(name.as_bytes()), Some(action) if !matches!(action, Action::Within(_)))
        {
            return Err(Error::new(Code(31250), format!("path collision at {name}")));
        }
        self.within(name)?.branch(rest)
    }

    /// Returns the computed fields.
    pub(super) fn additions(&self) -> Additions {
        let addition = |(name, action): &(Box<str>, Action)| {
            let addition = match action {
                Action::Computed(expression) => Addition::Computed(expression.clone()),
                Action::Within(branch) => {
                    Some(branch.additions()).filter(|additions| !additions.is_empty()).map(Addition::Within)?
                }
                Action::Include | Action::Exclude | Action::Slice(_) | Action::ElemMatch(_) | Action::Positional => {
                    return None;
                }
            };
            Some((name.as_bytes().into(), addition))
        };
        Additions::new(self.fields.iter().filter_map(addition))
    }

    /// Returns the branch of the field `name`, created if necessary; fails with 31249 if the field has another
    /// action.
    fn within(&mut self, name: &str) -> Result<&mut Self> {
        let place = self.fields.place(name.as_bytes());
        let place = place.unwrap_or_else(|| self.fields.push(name.into(), Action::Within(Self::default())));
        match self.fields.at_mut(place) {
            Some(Action::Within(branch)) => Ok(branch),
            _ => Err(Error::new(Code(31249), format!("path collision at {name}, which is projected whole"))),
        }
    }
}
