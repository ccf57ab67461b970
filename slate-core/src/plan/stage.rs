/// What a node of a plan does. Explain, execution statistics and tests name nodes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    AddFields,
    AndSorted,
    CollScan,
    CollStats,
    Count,
    CountRows,
    CountScan,
    Distinct,
    DistinctScan,
    Eof,
    BucketAuto,
    Densify,
    Documents,
    Facet,
    Fetch,
    Filter,
    GraphLookup,
    Group,
    IdHack,
    IndexStats,
    IxScan,
    Limit,
    Lookup,
    Match,
    Or,
    Projection,
    ProjectionCovered,
    Redact,
    ReplaceRoot,
    Sample,
    SetWindowFields,
    Skip,
    Sort,
    UnionWith,
    Unwind,
}

impl Stage {
    /// Returns the name in explain documents: MongoDB's.
    pub(crate) fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name in drawn plans.
    pub(crate) fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::AddFields => ("$addFields", "ADD FIELDS"),
            Self::AndSorted => ("AND_SORTED", "INDEX MERGE"),
            Self::CollScan => ("COLLSCAN", "SCAN"),
            Self::CollStats => ("$collStats", "COLLECTION STATS"),
            Self::Count => ("COUNT", "COUNT"),
            Self::CountRows => ("$count", "COUNT ROWS"),
            Self::CountScan => ("COUNT_SCAN", "COUNT KEYS"),
            Self::Distinct => ("DISTINCT", "DISTINCT"),
            Self::DistinctScan => ("DISTINCT_SCAN", "DISTINCT KEYS"),
            Self::Eof => ("EOF", "EOF"),
            Self::BucketAuto => ("$bucketAuto", "BUCKET AUTO"),
            Self::Densify => ("$densify", "DENSIFY"),
            Self::Documents => ("$documents", "DOCUMENTS"),
            Self::Facet => ("$facet", "FACET"),
            Self::Fetch => ("FETCH", "FETCH"),
            Self::Filter => ("FILTER", "FILTER"),
            Self::GraphLookup => ("$graphLookup", "GRAPH LOOKUP"),
            Self::Group => ("$group", "GROUP"),
            Self::IdHack => ("IDHACK", "POINTS"),
            Self::IndexStats => ("$indexStats", "INDEX STATS"),
            Self::IxScan => ("IXSCAN", "INDEX SCAN"),
            Self::Limit => ("LIMIT", "LIMIT"),
            Self::Lookup => ("$lookup", "LOOKUP"),
            Self::Match => ("MATCH", "MATCH"),
            Self::Or => ("OR", "INDEX MERGE"),
            Self::Projection => ("PROJECTION", "PROJECT"),
            Self::ProjectionCovered => ("PROJECTION_COVERED", "COVERED"),
            Self::Redact => ("$redact", "REDACT"),
            Self::ReplaceRoot => ("$replaceRoot", "REPLACE ROOT"),
            Self::Sample => ("$sample", "SAMPLE"),
            Self::SetWindowFields => ("$setWindowFields", "WINDOW"),
            Self::Skip => ("SKIP", "SKIP"),
            Self::Sort => ("SORT", "SORT"),
            Self::UnionWith => ("$unionWith", "UNION WITH"),
            Self::Unwind => ("$unwind", "UNWIND"),
        }
    }
}
