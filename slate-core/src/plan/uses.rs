//! Counts which indexes the executed plans use.

use super::{CountedKeys, IdPlan, IndexScan, Plan, RawPlan};
use crate::catalog::CollectionInfo;

impl Plan {
    /// Counts one use of each index that the plan reads, or one scan of the collection.
    pub(crate) fn count_uses(&self, collection: &CollectionInfo) {
        match self {
            Self::Whole { input }
            | Self::Project { input, .. }
            | Self::Count { input }
            | Self::Distinct { input, .. } => {
                input.count_uses(collection);
            }
            Self::Covered { scan, .. } | Self::DistinctKeys { scan, .. } | Self::DistinctEntries { scan, .. } => {
                scan.index.uses.add();
            }
            Self::CountKeys { keys: CountedKeys::Entries(scan), .. } => scan.index.uses.add(),
            Self::CountKeys { keys: CountedKeys::Ids(ids), .. } => ids.count_uses(collection),
            Self::CountKeys { keys: CountedKeys::Records { bounds }, .. } => {
                if bounds.is_some() {
                    collection.uses.ids.add();
                }
            }
            Self::Pipeline { input, .. } => input.count_uses(collection),
        }
    }
}

impl RawPlan {
    fn count_uses(&self, collection: &CollectionInfo) {
        match self.leaf() {
            Self::Scan { bounds: None, .. } => collection.uses.scans.add(),
            Self::Scan { bounds: Some(_), .. } => collection.uses.ids.add(),
            Self::Fetch { ids } => ids.count_uses(collection),
            // EOF reads nothing; a filter, sort or slice is never a leaf.
            Self::Eof { .. } | Self::Filter { .. } | Self::Sort { .. } | Self::Slice { .. } => {}
        }
    }
}

impl IdPlan {
    fn count_uses(&self, collection: &CollectionInfo) {
        match self {
            Self::Points(_) => collection.uses.ids.add(),
            Self::Index(scan) => scan.index.uses.add(),
            Self::Merge { inputs, .. } => {
                let (mut scans, mut has_points) = (Vec::new(), false);
                inputs.iter().for_each(|input| input.add_scans(&mut scans, &mut has_points));
                // An index is used once, however many of its ranges are read.
                scans.sort_by_key(|scan| scan.index.keyspace);
                scans.dedup_by_key(|scan| scan.index.keyspace);
                scans.iter().for_each(|scan| scan.index.uses.add());
                if has_points {
                    collection.uses.ids.add();
                }
            }
        }
    }

    fn add_scans<'p>(&'p self, scans: &mut Vec<&'p IndexScan>, has_points: &mut bool) {
        match self {
            Self::Points(_) => *has_points = true,
            Self::Index(scan) => scans.push(scan),
            Self::Merge { inputs, .. } => inputs.iter().for_each(|input| input.add_scans(scans, has_points)),
        }
    }
}
