use super::{Window, window::own_window};
use crate::{
    document::long,
    plan::{
        reads::Read,
        shown::{MongoStage, ShownNode},
    },
};

/// What a node does: its name in explain documents, which is MongoDB's, and its name in drawn plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
}

/// What the walks over a plan need to know of a node.
pub(crate) struct Description<'n> {
    /// The stage that draws and measures the node. `None`: the node is drawn by its window and its input.
    pub(crate) stage: Option<Stage>,
    /// The skip and the limit that the node applies to its rows. They are drawn and measured as nodes above it.
    pub(crate) window: Window,
    /// In the order in which they are opened.
    pub(crate) inputs: &'n [&'n dyn Node],
    /// Whether the inputs are read one after the other, so that at most one of them holds rows.
    pub(crate) reads_one_by_one: bool,
    /// How many nodes hold rows at the same time, without those of the inputs.
    pub(crate) holders: usize,
    /// What the node itself reads from the store; `None` if it reads only its inputs.
    pub(crate) read: Option<Read<'n>>,
    /// Completes what is shown of the node, which already has its stage and inputs. The text is the name of the plan's
    /// collection.
    pub(crate) show: &'n dyn Fn(ShownNode, &str) -> ShownNode,
    /// Returns MongoDB's stage for a part of the window, with its number of rows.
    pub(crate) show_window: fn(Stage, u64) -> MongoStage,
}

impl Description<'_> {
    /// Describes a node that is not drawn.
    pub(crate) const HIDDEN: Self = Self {
        stage: None,
        window: Window { skip: 0, limit: None },
        inputs: &[],
        reads_one_by_one: false,
        holders: 0,
        read: None,
        show: &|shown, _| shown,
        show_window: own_window,
    };

    /// Describes a node with these names and nothing else.
    pub(crate) fn of(name: &'static str, title: &'static str) -> Self {
        Self { stage: Some(Stage { name, title }), ..Self::HIDDEN }
    }

    fn holders(&self) -> usize {
        let inputs = self.inputs.iter().map(|input| input.holders());
        self.holders + if self.reads_one_by_one { inputs.max().unwrap_or_default() } else { inputs.sum() }
    }
}

/// A node of a plan, or a tier of nodes.
pub(crate) trait Node {
    /// Calls `visit` with the description of the node, once.
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>));

    /// Returns the window and the stage by which the node is drawn and measured.
    fn stages(&self) -> (Window, Option<Stage>) {
        let mut stages = Default::default();
        self.describe(&mut |node| stages = (node.window, node.stage));
        stages
    }

    /// Returns how many nodes, of this one and those below, hold rows at the same time.
    fn holders(&self) -> usize {
        let mut holders = 0;
        self.describe(&mut |node| holders = node.holders());
        holders
    }

    /// Visits each part of the store that the plan reads: several parts only of a merge, none of a plan without rows.
    fn each_read(&self, visit: &mut dyn FnMut(Read<'_>)) {
        self.describe(&mut |node| {
            node.inputs.iter().for_each(|input| input.each_read(visit));
            node.read.into_iter().for_each(&mut *visit);
        });
    }

    /// Returns what is shown of the plan.
    fn shown(&self, collection: &str) -> ShownNode {
        let mut inputs = Vec::new();
        self.describe(&mut |node| inputs = node.inputs.iter().map(|input| input.shown(collection)).collect());
        self.shown_over(inputs, collection)
    }

    fn shown_over(&self, mut inputs: Vec<ShownNode>, collection: &str) -> ShownNode {
        let mut result = ShownNode::default();
        self.describe(&mut |node| {
            let mut inputs = std::mem::take(&mut inputs);
            let shown = match node.stage {
                Some(stage) => ShownNode { stage, inputs, ..ShownNode::default() },
                None => inputs.pop().unwrap_or_default(),
            };
            result = node.window.parts().rev().fold((node.show)(shown, collection), |shown, (stage, rows)| {
                let window = ShownNode { stage, inputs: vec![shown], ..ShownNode::default() };
                let window = window.with(&stage.name.to_lowercase(), long(rows)).line(rows.to_string());
                window.shown_as((node.show_window)(stage, rows))
            });
        });
        result
    }
}
