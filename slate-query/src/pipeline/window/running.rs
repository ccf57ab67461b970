//! Outputs that depend on no later document. They are computed document by document, without holding the partition.

use super::{
    function::{Function, Rank},
    parse::Windows,
    series::MovingAverage,
};
use crate::{
    Code, Error, Result,
    expression::{Env, Evaluated, accumulator::Gathered},
    pipeline::nested::put,
    raw::{Doc, Value},
};

/// Computes the outputs of documents as they come, partition by partition.
#[derive(Debug)]
pub struct RunningResults {
    outputs: Vec<RunningState>,
    /// The number of documents of the partition so far.
    documents: usize,
    /// The sort keys of the last document and of the one before.
    keys: [Vec<u8>; 2],
    scratch: Vec<u8>,
}

/// The state of an output after the previous documents of the partition.
#[derive(Debug)]
enum RunningState {
    Accumulate(Gathered),
    Rank(usize),
    MovingAverage(MovingAverage),
}

impl RunningResults {
    /// Returns results for the first partition. `None` unless each output is a rank, a moving average, or an
    /// accumulator that merges, over the documents up to the current one.
    pub fn of(windows: &Windows) -> Option<Self> {
        let state = |function: &Function| match function {
            Function::Accumulate(spec) if spec.merges() => Some(RunningState::Accumulate(Gathered::default())),
            Function::Rank(_) => Some(RunningState::Rank(0)),
            Function::MovingAverage { .. } => Some(RunningState::MovingAverage(MovingAverage::default())),
            _ => None,
        };
        let outputs = windows.outputs().iter().map(|output| {
            let is_running = !matches!(output.function, Function::Accumulate(_)) || output.frame.is_running();
            state(&output.function).filter(|_| is_running)
        });
        let outputs = outputs.collect::<Option<_>>()?;
        Some(Self { outputs, documents: 0, keys: Default::default(), scratch: Vec::new() })
    }

    /// Starts the next partition.
    pub fn restart(&mut self) {
        self.documents = 0;
        for output in &mut self.outputs {
            match output {
                RunningState::Accumulate(gathered) => *gathered = Gathered::default(),
                RunningState::Rank(rank) => *rank = 0,
                RunningState::MovingAverage(average) => *average = MovingAverage::default(),
            }
        }
    }

    /// Writes into `out` (cleared first) the kept fields of the next document, with its outputs.
    ///
    /// # Errors
    /// The errors of the expressions.
    pub fn write(&mut self, windows: &Windows, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.documents += 1;
        let is_peer = self.is_peer(windows, document)?;
        windows.kept().copy(document, out);
        let Self { outputs, documents, scratch, .. } = self;
        windows.bindings().within(document, |env| {
            for (output, state) in windows.outputs().iter().zip(outputs) {
                let value = state.next(&output.function, env, *documents, is_peer)?;
                put(output.path.parts(), value.as_value(), scratch, out);
            }
            Ok(())
        })
    }

    /// Returns whether the document is equal to the last under the sort, if an output depends on that.
    fn is_peer(&mut self, windows: &Windows, document: Doc<'_>) -> Result<bool> {
        let (true, Some(sort)) = (windows.compares_peers(), windows.sort()) else { return Ok(false) };
        let [last, before] = &mut self.keys;
        std::mem::swap(last, before);
        last.clear();
        sort.key(document, last)?;
        Ok(self.documents > 1 && last == before)
    }
}

impl RunningState {
    fn next(
        &mut self,
        function: &Function,
        env: &Env<'_>,
        documents: usize,
        is_peer: bool,
    ) -> Result<Evaluated<'static>> {
        Ok(match (self, function) {
            (Self::Accumulate(gathered), Function::Accumulate(spec)) => {
                spec.add(gathered, Value::NULL, env, 1)?;
                // An accumulator that merges can add values after `finish`.
                spec.finish(gathered)
            }
            (Self::Rank(rank), Function::Rank(kind)) => {
                *rank = match kind {
                    Rank::Sparse | Rank::Dense if is_peer => *rank,
                    Rank::Number | Rank::Sparse => documents,
                    Rank::Dense => *rank + 1,
                };
                Evaluated::count(*rank)
            }
            (Self::MovingAverage(average), Function::MovingAverage { input, alpha }) => {
                input.visit(env, |value| average.next(*alpha, value))?
            }
            _ => return Err(Error::new(Code::INTERNAL_ERROR, "a window function has the state of another")),
        })
    }
}
