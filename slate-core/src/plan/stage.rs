/// Declares the stages, each with its name in explain documents, which is MongoDB's, and its name in drawn plans.
macro_rules! stages {
    ($($stage:ident $name:literal $title:literal,)*) => {
        /// What a node of a plan does. Explain, execution statistics and tests name nodes by it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Stage {
            $($stage,)*
        }

        impl Stage {
            /// Returns the name in explain documents: MongoDB's.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$stage => $name,)*
                }
            }

            /// Returns the name in drawn plans.
            pub(crate) fn title(self) -> &'static str {
                match self {
                    $(Self::$stage => $title,)*
                }
            }
        }
    };
}

stages! {
    AddFields "$addFields" "ADD FIELDS",
    AndSorted "AND_SORTED" "INDEX MERGE",
    BucketAuto "$bucketAuto" "BUCKET AUTO",
    CollScan "COLLSCAN" "SCAN",
    CollStats "$collStats" "COLLECTION STATS",
    Count "COUNT" "COUNT",
    CountRows "$count" "COUNT ROWS",
    CountScan "COUNT_SCAN" "COUNT KEYS",
    Densify "$densify" "DENSIFY",
    Distinct "DISTINCT" "DISTINCT",
    DistinctScan "DISTINCT_SCAN" "DISTINCT KEYS",
    Documents "$documents" "DOCUMENTS",
    Eof "EOF" "EOF",
    Facet "$facet" "FACET",
    Fetch "FETCH" "FETCH",
    Filter "FILTER" "FILTER",
    GraphLookup "$graphLookup" "GRAPH LOOKUP",
    Group "$group" "GROUP",
    IdHack "IDHACK" "POINTS",
    IndexStats "$indexStats" "INDEX STATS",
    IxScan "IXSCAN" "INDEX SCAN",
    Limit "LIMIT" "LIMIT",
    Lookup "$lookup" "LOOKUP",
    Match "MATCH" "MATCH",
    Or "OR" "INDEX MERGE",
    Projection "PROJECTION" "PROJECT",
    ProjectionCovered "PROJECTION_COVERED" "COVERED",
    Redact "$redact" "REDACT",
    ReplaceRoot "$replaceRoot" "REPLACE ROOT",
    Sample "$sample" "SAMPLE",
    SetWindowFields "$setWindowFields" "WINDOW",
    Skip "SKIP" "SKIP",
    Sort "SORT" "SORT",
    UnionWith "$unionWith" "UNION WITH",
    Unwind "$unwind" "UNWIND",
}
