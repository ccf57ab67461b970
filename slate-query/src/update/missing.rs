//! Applies operators to a missing path: they create it, ignore it, or fail.

use super::{
    apply::{Branches, place},
    scope::{UpdateOutcome, UpdateScope},
    tree::UpdateNode,
};
use crate::{Code, Error, Result, raw::Writer};

impl UpdateScope<'_> {
    /// Writes the value that the operators create for a missing field, with its parents, if they create one.
    pub(super) fn create(&self, nodes: &[&UpdateNode], name: &[u8], out: &mut Writer) -> Result<UpdateOutcome> {
        match place(nodes)? {
            Branches::Leaf(leaf) if !leaf.is_active(self.context) => Ok(UpdateOutcome::Unchanged),
            Branches::Leaf(leaf) => leaf.operator.create(name, self, out).map_err(|error| error.at(leaf.path.as_str())),
            Branches::Named(named) => {
                let checkpoint = out.checkpoint();
                out.open_document(name);
                let mut outcome = UpdateOutcome::Unchanged;
                for child in self.pending(&named)? {
                    if self.create(child.nodes.as_slice(), child.name.as_bytes(), out)? == UpdateOutcome::Changed {
                        outcome = UpdateOutcome::Changed;
                    }
                }
                if outcome == UpdateOutcome::Changed {
                    out.close();
                } else {
                    out.rollback(checkpoint);
                }
                Ok(outcome)
            }
            Branches::Each(_) => Err(no_array(name)),
        }
    }

    /// Fails if an operator below a value that cannot have fields does not allow that, as most do not.
    pub(super) fn blocked(&self, nodes: &[&UpdateNode]) -> Result<()> {
        match place(nodes)? {
            Branches::Leaf(leaf) if !leaf.is_active(self.context) => Ok(()),
            Branches::Leaf(leaf) => leaf.operator.blocked(self).map_err(|error| error.at(leaf.path.as_str())),
            Branches::Named(named) => {
                self.pending(&named)?.iter().try_for_each(|child| self.blocked(child.nodes.as_slice()))
            }
            Branches::Each(_) => Err(no_array(b"$[]")),
        }
    }
}

fn no_array(name: &[u8]) -> Error {
    let message = "the path must exist in the document in order to apply array updates";
    Error::new(Code::BAD_VALUE, message).at(String::from_utf8_lossy(name))
}
