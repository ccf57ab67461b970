//! Random documents, filters, sorts, projections and indexes. Names and values come from small pools, so that matches and
//! collisions are frequent.

use std::fmt;

use bson::{Bson, Document, doc};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::random_values::{ids, long_texts, numbers, regex, scalar, texts};

/// The paths and values of one case. They are few, so that conditions, indexes and documents match.
#[derive(Clone, Debug)]
pub struct Pool {
    values: Vec<Bson>,
    paths: Vec<String>,
    width: Width,
}

/// The variety of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// All operators, kinds of indexes and shapes.
    Wide,
    /// Small numbers and bounds on plain indexes: many matches and near matches.
    Narrow,
}

/// Related paths.
const RELATED: [&[&str]; 13] = [
    &["a"],
    &["a", "b"],
    &["a", "b", "c"],
    &["a.a", "a.b"],
    &["a.a", "a.b"],
    &["a.a", "a.b", "b"],
    &["a", "a.b"],
    &["a.0", "a"],
    &["a.0.b", "a.b"],
    &["a.b", "b.a"],
    &["a.b.a", "a.b.b"],
    &["a.b.0", "a.b", "a.1"],
    &["a", "_id"],
];

pub fn pool() -> BoxedStrategy<Pool> {
    let values = prop_oneof![
        2 => (vec(scalar(), 0..3)).prop_map(|mut values| {
            values.extend((0..3).map(Bson::Int32));
            values
        }),
        3 => Just((0..3).map(Bson::Int32).collect()),
        1 => vec(scalar(), 2..6),
        1 => vec(select(numbers()), 3..6),
        1 => vec(select(texts()), 3..6),
        1 => vec(prop_oneof![3 => select(long_texts()), 1 => scalar()], 3..6),
    ];
    let wide = (values, select(&RELATED[..])).prop_map(|(values, paths)| (values, paths, Width::Wide));
    let small = (0..3).map(Bson::Int32).collect::<Vec<_>>();
    let narrow = select(&RELATED[..]).prop_map(move |paths| (small.clone(), paths, Width::Narrow));
    prop_oneof![3 => wide, 2 => narrow]
        .prop_map(|(values, paths, width)| {
            let paths = paths.iter().map(|&path| path.to_owned()).collect();
            Pool { values, paths, width }
        })
        .boxed()
}

const NAMES: [&str; 3] = ["a", "b", "0"];

impl Pool {
    /// Returns the scalar values of the case.
    pub fn values(&self) -> &[Bson] {
        &self.values
    }

    fn value(&self) -> BoxedStrategy<Bson> {
        select(self.values.clone()).boxed()
    }

    /// Returns values, among them documents, arrays, and arrays of both.
    pub fn nested(&self) -> BoxedStrategy<Bson> {
        let names = || prop_oneof![5 => Just("a"), 5 => Just("b"), 1 => Just("0")];
        self.value()
            .prop_recursive(3, 12, 3, move |inner| {
                prop_oneof![
                    2 => vec((names(), inner.clone()), 0..3).prop_map(|fields| Bson::Document(document_of(fields))),
                    3 => vec(inner, 0..4).prop_map(Bson::Array),
                ]
            })
            .boxed()
    }

    /// Returns documents of one shape, for paths through arrays.
    fn element(&self) -> BoxedStrategy<Bson> {
        if self.width == Width::Narrow {
            let fields = vec((select(&NAMES[..2]), self.value()), 1..4);
            return fields.prop_map(|fields| Bson::Document(document_of(fields))).boxed();
        }
        let value =
            prop_oneof![8 => self.value(), 1 => vec(self.value(), 0..3).prop_map(Bson::Array), 1 => self.nested()];
        vec((select(&NAMES[..2]), value), 0..4).prop_map(|fields| Bson::Document(document_of(fields))).boxed()
    }

    /// Returns a value for the first field of a path. Where the path continues, the value mostly does, too.
    fn field(&self, name: &str) -> BoxedStrategy<Bson> {
        let goes_on = self.paths.iter().any(|path| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
        let elements = vec(prop_oneof![8 => self.element(), 1 => self.value()], 0..4).prop_map(Bson::Array);
        let array = vec(self.value(), 0..4).prop_map(Bson::Array);
        if self.width == Width::Narrow {
            return if goes_on {
                prop_oneof![3 => elements, 1 => self.element()].boxed()
            } else {
                prop_oneof![2 => self.value(), 1 => array].boxed()
            };
        }
        let (flat, deep) = if goes_on { (1, 6) } else { (5, 1) };
        prop_oneof![
            2 * flat => self.value(),
            flat => array,
            deep => elements,
            deep => self.element(),
            1 => self.nested(),
            1 => scalar(),
        ]
        .boxed()
    }

    /// Returns a document without `_id`.
    pub fn body(&self) -> BoxedStrategy<Document> {
        let fields = ["a", "b", "c"].map(|name| {
            let wanted = self.paths.iter().any(|path| path.split('.').next() == Some(name));
            option::weighted(if wanted { 0.85 } else { 0.2 }, self.field(name)).prop_map(move |value| (name, value))
        });
        let [a, b, c] = fields;
        let present = |fields: Vec<(&'static str, Option<Bson>)>| {
            document_of(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
        };
        prop_oneof![
            3 => (a.clone(), b.clone(), c.clone()).prop_map(move |(a, b, c)| present(vec![a, b, c])),
            1 => (a, b, c).prop_map(move |(a, b, c)| present(vec![c, b, a])),
        ]
        .boxed()
    }
}

fn document_of(fields: Vec<(&str, Bson)>) -> Document {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Pool {
    /// Returns documents with unsorted `_id`s.
    pub fn documents(&self, most: usize) -> BoxedStrategy<Vec<Document>> {
        (vec(self.body(), 0..most), 0..ids().len())
            .prop_map(|(bodies, first)| {
                let ids = ids();
                let with_id = |(place, body): (usize, Document)| {
                    let mut document = doc! { "_id": ids[(first + place * 5) % ids.len()].clone() };
                    document.extend(body);
                    document
                };
                // 5 and 24 are coprime, so up to 24 documents get different ids.
                bodies.into_iter().take(ids.len()).enumerate().map(with_id).collect()
            })
            .boxed()
    }

    pub fn path(&self) -> BoxedStrategy<String> {
        if self.width == Width::Narrow {
            return select(self.paths.clone()).boxed();
        }
        prop_oneof![8 => select(self.paths.clone()), 1 => select(&ANY_PATH[..]).prop_map(str::to_owned)].boxed()
    }

    pub fn operand(&self) -> BoxedStrategy<Bson> {
        prop_oneof![
            12 => self.value(),
            1 => scalar(),
            1 => select(ids()),
            1 => self.nested(),
            1 => Just(Bson::Null)
        ]
        .boxed()
    }
}

const ANY_PATH: [&str; 14] =
    ["a", "b", "c", "a.b", "a.a", "b.a", "a.0", "a.b.0", "a.0.b", "b.0.a", "a.b.a", "a.1", "_id", "_id.a"];

fn pattern() -> BoxedStrategy<Bson> {
    let patterns = select(vec!["^a", "^ab", "^a\\.", "a", "b$", "^", "^(a|b)", "^a?b", "^a*", "^A", "x"]);
    (patterns, select(vec!["", "", "", "i", "m", "s", "x"]))
        .prop_map(|(pattern, options)| regex(pattern, options))
        .boxed()
}

fn types() -> BoxedStrategy<Bson> {
    let names = [
        "double",
        "string",
        "object",
        "array",
        "binData",
        "undefined",
        "objectId",
        "bool",
        "date",
        "null",
        "regex",
        "javascript",
        "symbol",
        "int",
        "timestamp",
        "long",
        "decimal",
        "minKey",
        "maxKey",
        "number",
    ];
    let one = prop_oneof![select(names.to_vec()).prop_map(Bson::from), (-1..20_i32).prop_map(Bson::Int32)];
    prop_oneof![2 => one.clone(), 1 => vec(one, 1..3).prop_map(Bson::Array)].boxed()
}

fn element_path() -> BoxedStrategy<String> {
    prop_oneof![4 => Just("a"), 4 => Just("b"), 1 => Just("a.b"), 1 => Just("0")].prop_map(str::to_owned).boxed()
}

impl Pool {
    /// Returns one operator with its operand.
    fn operator(&self, depth: u32) -> BoxedStrategy<(String, Bson)> {
        let named = |name: &'static str| move |operand: Bson| (name.to_owned(), operand);
        let compared =
            (select(vec!["$eq", "$ne"]), self.operand()).prop_map(|(name, operand)| (name.to_owned(), operand));
        let range = (select(vec!["$gt", "$gte", "$lt", "$lte"]), self.operand())
            .prop_map(|(name, operand)| (name.to_owned(), operand));
        let listed = (
            select(vec!["$in", "$in", "$nin"]),
            vec(prop_oneof![6 => self.operand(), 1 => pattern()], 0..4).prop_map(Bson::Array),
        )
            .prop_map(|(name, operand)| (name.to_owned(), operand));
        let all = vec(prop_oneof![6 => self.operand(), 1 => pattern()], 0..3).prop_map(Bson::Array);
        let bits = (select(vec!["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"]), 0..4_i32)
            .prop_map(|(name, mask)| (name.to_owned(), Bson::Int32(mask)));
        let modulo =
            (1..3_i32, 0..2_i32).prop_map(|(divisor, rest)| ("$mod".to_owned(), Bson::from(vec![divisor, rest])));
        let leaf = prop_oneof![
            5 => compared,
            7 => range,
            4 => listed,
            2 => all.prop_map(named("$all")),
            2 => any::<bool>().prop_map(Bson::Boolean).prop_map(named("$exists")),
            2 => types().prop_map(named("$type")),
            1 => (0..3_i32).prop_map(Bson::Int32).prop_map(named("$size")),
            1 => modulo,
            1 => pattern().prop_map(named("$regex")),
            1 => bits,
        ];
        if depth == 0 {
            return leaf.boxed();
        }
        prop_oneof![
            10 => leaf,
            2 => self.operators(depth - 1).prop_map(Bson::Document).prop_map(named("$not")),
            2 => self.operators(depth - 1).prop_map(Bson::Document).prop_map(named("$elemMatch")),
            2 => self.filter_on(element_path(), depth - 1).prop_map(Bson::Document).prop_map(named("$elemMatch")),
        ]
        .boxed()
    }

    fn operators(&self, depth: u32) -> BoxedStrategy<Document> {
        prop_oneof![
            3 => self.operator(depth).prop_map(|one| Document::from_iter([one])),
            1 => vec(self.operator(depth), 2..3).prop_map(Document::from_iter),
        ]
        .boxed()
    }

    fn predicate(&self, paths: BoxedStrategy<String>, depth: u32) -> BoxedStrategy<Document> {
        let condition = prop_oneof![
            3 => self.operand(),
            1 => pattern(),
            8 => self.operators(depth).prop_map(Bson::Document),
        ];
        (paths, condition).prop_map(|(path, condition)| Document::from_iter([(path, condition)])).boxed()
    }

    fn filter_on(&self, paths: BoxedStrategy<String>, depth: u32) -> BoxedStrategy<Document> {
        let one = self.predicate(paths.clone(), depth);
        if depth == 0 {
            return one;
        }
        let several = vec(self.predicate(paths.clone(), depth - 1), 2..4)
            .prop_map(|predicates| predicates.into_iter().flatten().collect::<Document>());
        let logical = (select(vec!["$and", "$and", "$or", "$or", "$nor"]), vec(self.filter_on(paths, depth - 1), 1..4))
            .prop_map(|(name, filters)| doc! { name: filters });
        prop_oneof![4 => one, 5 => several, 3 => logical].boxed()
    }

    /// Returns a condition that bounds an index.
    pub fn condition(&self) -> BoxedStrategy<Bson> {
        let range = (select(vec!["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), self.value());
        let range = range.prop_map(|(name, operand)| (name.to_owned(), operand));
        prop_oneof![
            2 => self.value(),
            2 => range.clone().prop_map(|one| Bson::Document(Document::from_iter([one]))),
            3 => vec(range, 2..3).prop_map(|two| Bson::Document(Document::from_iter(two))),
            1 => vec(self.value(), 1..3).prop_map(|values| Bson::Document(doc! { "$in": values })),
        ]
        .boxed()
    }

    /// Returns a filter over all operators.
    pub fn filter(&self) -> BoxedStrategy<Document> {
        let beside = (select(vec!["$and", "$and", "$or", "$nor"]), self.filter_on(self.path(), 1), self.computed())
            .prop_map(|(name, filter, computed)| doc! { name: [filter, computed] });
        prop_oneof![
            1 => Just(Document::new()),
            12 => self.filter_on(self.path(), 2),
            2 => self.computed(),
            1 => beside,
        ]
        .boxed()
    }

    /// Returns a filter that compares by an expression.
    fn computed(&self) -> BoxedStrategy<Document> {
        let field = || self.path().prop_map(|path| Bson::from(format!("${path}")));
        let literal = self.operand().prop_map(|operand| Bson::from(doc! { "$literal": operand }));
        let operand = prop_oneof![4 => literal, 1 => field()];
        let name = select(vec!["$eq", "$eq", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
        let compared = (name, field(), operand, any::<bool>()).prop_map(|(name, field, operand, is_turned)| {
            doc! { name: if is_turned { [operand, field] } else { [field, operand] } }
        });
        let listed = (field(), vec(self.operand(), 0..3))
            .prop_map(|(field, values)| doc! { "$in": [field, { "$literal": values }] });
        let compared = prop_oneof![6 => compared, 1 => listed].boxed();
        let several = |part: BoxedStrategy<Document>| {
            let parts = (select(vec!["$and", "$or"]), vec(part, 1..4));
            parts.prop_map(|(name, parts)| doc! { name: parts })
        };
        let nested = several(prop_oneof![2 => compared.clone(), 1 => several(compared.clone())].boxed());
        prop_oneof![3 => compared, 2 => nested].prop_map(|expression| doc! { "$expr": expression }).boxed()
    }

    pub fn directed(&self, most: usize) -> BoxedStrategy<Document> {
        vec((self.path(), select(vec![1_i32, 1, -1])), 1..=most)
            .prop_map(|fields| fields.into_iter().map(|(path, direction)| (path, Bson::Int32(direction))).collect())
            .boxed()
    }

    fn projection(&self) -> BoxedStrategy<Document> {
        let fields = vec((self.path(), select(vec![0_i32, 1])), 1..3)
            .prop_map(|fields| fields.into_iter().map(|(path, shown)| (path, Bson::Int32(shown))).collect());
        let include = vec(select(vec!["a", "b", "c", "a.b", "_id"]), 1..4)
            .prop_map(|paths| paths.into_iter().map(|path| (path.to_owned(), Bson::Int32(1))).collect());
        let positional = select(vec!["a.$", "b.$", "a.b.$"]).prop_map(|path| doc! { path: 1 });
        let sliced = (select(vec!["a", "a.b"]), -2..3_i32).prop_map(|(path, slice)| doc! { path: { "$slice": slice } });
        prop_oneof![3 => include, 2 => fields, 1 => positional, 1 => sliced].boxed()
    }

    pub fn width(&self) -> Width {
        self.width
    }

    pub fn index(&self) -> BoxedStrategy<RandomIndex> {
        prop_oneof![5 => self.plain_index(), 1 => self.wildcard_index(), 1 => self.compound_wildcard_index()].boxed()
    }

    /// Returns a wildcard index.
    fn wildcard_index(&self) -> BoxedStrategy<RandomIndex> {
        let all = |value: i32| doc! { "$**": value };
        let names = vec(select(vec!["a", "b", "a.b", "a.a", "b.a", "c"]), 1..3);
        let limited = (names, 0..2_i32, any::<bool>()).prop_map(move |(names, included, with_id)| {
            let mut projection: Document =
                names.into_iter().map(|name| (name.to_owned(), Bson::Int32(included))).collect();
            if with_id {
                projection.insert("_id", 1);
            }
            (doc! { "$**": 1 }, Some(projection))
        });
        let below = select(vec!["a.$**", "b.$**", "a.b.$**"]).prop_map(|key| (doc! { key: 1 }, None));
        let whole = select(vec![1, -1]).prop_map(move |direction| (all(direction), None));
        let keys = prop_oneof![4 => whole, 2 => limited, 2 => below];
        self.index_on((keys, self.directed(1)).prop_map(|((keys, projection), aim)| (keys, aim, projection)))
    }

    /// Returns a wildcard index with other fields before and after the wildcard.
    pub fn compound_wildcard_index(&self) -> BoxedStrategy<RandomIndex> {
        let others = prop_oneof![3 => self.directed(2), 1 => select(vec!["b", "c"]).prop_map(|name| doc! { name: 1 })];
        // A path of the wildcard, and how many of its names the key has; 0 for a wildcard on all fields.
        let wildcard = (self.path(), 0..3_usize, select(vec![1, -1]), 0..3_usize, any::<bool>());
        let keys = (others, wildcard).prop_map(|(others, (path, names, direction, before, is_included))| {
            let root = path.split('.').take(names).collect::<Vec<_>>().join(".");
            let key = if root.is_empty() { "$**".to_owned() } else { format!("{root}.$**") };
            let keys_with = |name: &str| -> Document {
                let mut keys: Vec<(String, Bson)> =
                    others.clone().into_iter().filter(|(other, _)| other != name).collect();
                keys.insert(before.min(keys.len()), (name.to_owned(), Bson::Int32(direction)));
                keys.into_iter().collect()
            };
            let projection = match is_included {
                true => doc! { &path: 1 },
                false => others.keys().map(|other| (other.clone(), Bson::Int32(0))).collect(),
            };
            (keys_with(&key), keys_with(&path), root.is_empty().then_some(projection))
        });
        self.index_on(keys)
    }

    /// Returns wildcard indexes with these keys, aims and projections.
    fn index_on(
        &self,
        keys: impl Strategy<Value = (Document, Document, Option<Document>)> + 'static,
    ) -> BoxedStrategy<RandomIndex> {
        let partial = option::weighted(0.2, self.filter_on(self.path(), 1));
        (keys, partial, prop::bool::weighted(0.15), any::<bool>())
            .prop_map(|((keys, aim, projection), partial, is_collated, before_documents)| RandomIndex {
                keys,
                aim,
                projection,
                unique: false,
                sparse: false,
                partial,
                is_collated,
                before_documents,
            })
            .boxed()
    }

    fn plain_index(&self) -> BoxedStrategy<RandomIndex> {
        if self.width == Width::Narrow {
            let plain = (self.directed(3), any::<bool>()).prop_map(|(keys, before_documents)| RandomIndex {
                aim: keys.clone(),
                keys,
                projection: None,
                unique: false,
                sparse: false,
                partial: None,
                is_collated: false,
                before_documents,
            });
            return plain.boxed();
        }
        let unique = prop::bool::weighted(0.1);
        let sparse = prop::bool::weighted(0.15);
        let partial = option::weighted(0.2, self.filter_on(self.path(), 1));
        let is_collated = prop::bool::weighted(0.15);
        (self.directed(3), unique, sparse, partial, is_collated, any::<bool>())
            .prop_map(|(keys, unique, sparse, partial, is_collated, before_documents)| {
                let sparse = sparse && partial.is_none();
                let (aim, projection) = (keys.clone(), None);
                RandomIndex { keys, aim, projection, unique, sparse, partial, is_collated, before_documents }
            })
            .boxed()
    }

    pub fn indexes(&self, most: usize) -> BoxedStrategy<Vec<RandomIndex>> {
        vec(self.index(), 1..=most).boxed()
    }

    pub fn query(&self) -> BoxedStrategy<RandomQuery> {
        let skip = prop_oneof![3 => Just(0_u64), 1 => 1..4_u64];
        let limit = option::of(prop_oneof![5 => 1..6_u64, 1 => Just(0_u64)]);
        let sort = option::weighted(0.6, self.directed(3));
        let projection = option::weighted(0.4, self.projection());
        (self.filter(), sort, projection, skip, limit, self.path(), prop::bool::weighted(0.15))
            .prop_map(|(filter, sort, projection, skip, limit, distinct, is_collated)| RandomQuery {
                is_collated,
                filter,
                sort,
                projection,
                skip,
                limit,
                distinct,
            })
            .boxed()
    }
}

/// An index, and whether it is created before the documents are inserted.
#[derive(Clone)]
pub struct RandomIndex {
    pub keys: Document,
    /// Fields that the index contains, and their directions.
    pub aim: Document,
    /// The `wildcardProjection`.
    pub projection: Option<Document>,
    pub unique: bool,
    pub sparse: bool,
    pub partial: Option<Document>,
    /// Whether it compares strings without case and accents.
    pub is_collated: bool,
    pub before_documents: bool,
}

/// Prints one line, to make failures readable.
impl fmt::Debug for RandomIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {}", self.keys)?;
        let flags = [
            (self.unique, "unique"),
            (self.sparse, "sparse"),
            (self.is_collated, "collated"),
            (self.before_documents, "before"),
        ];
        for (flag, name) in flags {
            write!(f, "{}", if flag { format!(" {name}") } else { String::new() })?;
        }
        self.projection.as_ref().map_or(Ok(()), |projection| write!(f, " project {projection}"))?;
        self.partial.as_ref().map_or(Ok(()), |partial| write!(f, " only {partial}"))
    }
}

impl RandomIndex {
    pub fn spec(&self) -> slate_core::Index {
        let mut index = slate_core::Index::on(&self.keys);
        if self.unique {
            index = index.unique();
        }
        if self.sparse {
            index = index.sparse();
        }
        if let Some(partial) = &self.partial {
            index = index.only(partial);
        }
        if let Some(projection) = &self.projection {
            index = index.wildcard_projection(projection);
        }
        if self.is_collated {
            index = index.collation(collation());
        }
        index
    }
}

/// Returns the collation of queries and indexes that have one.
pub fn collation() -> Document {
    doc! { "locale": "en", "strength": 1 }
}

/// A query.
#[derive(Clone)]
pub struct RandomQuery {
    pub filter: Document,
    pub sort: Option<Document>,
    pub projection: Option<Document>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub distinct: String,
    /// Whether strings are compared without case and accents.
    pub is_collated: bool,
}

/// Prints one line, to make failures readable.
impl fmt::Debug for RandomQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "find {}", self.filter)?;
        self.sort.as_ref().map_or(Ok(()), |sort| write!(f, " sort {sort}"))?;
        self.projection.as_ref().map_or(Ok(()), |projection| write!(f, " project {projection}"))?;
        write!(f, " skip {} limit {:?} distinct {}", self.skip, self.limit, self.distinct)?;
        write!(f, "{}", if self.is_collated { " collated" } else { "" })
    }
}
