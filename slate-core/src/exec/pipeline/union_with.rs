use slate_query::{pipeline::UnionWith, raw::Doc};
use slate_store::View;

use super::foreign::Foreign;
use crate::{
    Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    plan::Optimization,
};

/// The rows of `$unionWith`: the documents of the input, then those of another collection or of its own pipeline.
pub(crate) struct UnionRows<'v, V: View> {
    source: UnionInput<'v>,
    union: UnionWith,
    foreign: Foreign<V>,
    interrupt: Interrupt,
}

enum UnionInput<'v> {
    Input(BoxedRows<'v>),
    Other(BoxedRows<'v>),
}

impl<'v, V: View + 'v> UnionRows<'v, V> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        union: UnionWith,
        optimization: Optimization,
        view: &V,
        resources: &Resources,
        meter: &Meter,
    ) -> Self {
        let foreign = Foreign::new(union.from(), optimization, view, resources, meter);
        Self { source: UnionInput::Input(input), union, foreign, interrupt: resources.interrupt.clone() }
    }
}

impl<'v, V: View + 'v> Rows for UnionRows<'v, V> {
    fn park(&mut self) {
        match &mut self.source {
            UnionInput::Input(rows) | UnionInput::Other(rows) => rows.park(),
        }
    }

    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if let UnionInput::Input(input) = &mut self.source {
            if input.advance()? {
                return Ok(true);
            }
            self.source = UnionInput::Other(self.foreign.open(self.union.stages().to_vec())?);
        }
        let UnionInput::Other(rows) = &mut self.source else { return Ok(false) };
        rows.advance()
    }

    fn current(&self) -> Option<Doc<'_>> {
        match &self.source {
            UnionInput::Input(input) => input.current(),
            UnionInput::Other(rows) => rows.current(),
        }
    }
}
