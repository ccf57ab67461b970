//! Random calls whose work is inside one document, and the documents.

use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use slate_core::{Collection, ExplainVerbosity, Index, Result};

use super::common;

/// A generator of numbers that is the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Draws calls whose operands and documents have about `size` parts.
pub(super) struct Draw {
    pub(super) random: Random,
    pub(super) size: usize,
}

impl Draw {
    /// A number of operands: few or many.
    fn many(&mut self) -> usize {
        let size = self.size;
        if self.random.below(3) == 0 { 2 + self.random.below(4) } else { size / 2 + self.random.below(size / 2) }
    }

    fn number(&mut self) -> Bson {
        let size = self.size;
        // Most are not in the documents.
        Bson::Int32(self.random.below(4 * size) as i32 - 2 * size as i32)
    }

    fn scalar(&mut self) -> Bson {
        match self.random.below(6) {
            0 => Bson::String(format!("t{}", self.random.below(self.size))),
            1 => Bson::Document(doc! { "x": self.number(), "y": self.number() }),
            2 => Bson::Array(vec![self.number(), self.number()]),
            _ => self.number(),
        }
    }

    fn list(&mut self, mut each: impl FnMut(&mut Self) -> Bson) -> Bson {
        let length = self.many();
        Bson::Array((0..length).map(|_| each(self)).collect())
    }

    fn field(&mut self) -> &'static str {
        self.random.of(&["a", "a", "s", "o", "d", "d.x", "o.f1", "n", "none"])
    }

    fn condition(&mut self) -> Bson {
        Bson::Document(match self.random.below(12) {
            0 => doc! { "$ne": self.scalar() },
            1 => doc! { "$gt": self.scalar() },
            2 => doc! { "$in": self.list(Self::scalar) },
            3 => doc! { "$nin": self.list(Self::scalar) },
            4 => doc! { "$all": self.list(Self::scalar) },
            5 => doc! { "$elemMatch": { "$nin": self.list(Self::scalar) } },
            6 => doc! { "$elemMatch": { "$or": self.list(|draw| Bson::Document(doc! { "x": draw.scalar() })) } },
            7 => doc! { "$not": { "$elemMatch": { "$gt": self.number(), "$lt": self.number() } } },
            8 => doc! { "$regex": self.random.of(&["t1", "^ab", "b+ a", "(a|b) *b", "z$"]) },
            9 => doc! { "$size": self.random.below(9) as i32 },
            _ => return self.scalar(),
        })
    }

    /// Draws a filter that nests lists to this depth.
    fn filter(&mut self, levels: usize) -> Document {
        match self.random.below(if levels > 0 { 7 } else { 3 }) {
            0 | 1 => {
                let field = self.field();
                doc! { field: self.condition() }
            }
            2 if self.random.below(2) == 0 => doc! { "$expr": self.expression(2) },
            2 => {
                let values = self.list(Self::scalar);
                let mut distinct: Vec<Bson> = Vec::new();
                for value in values.as_array().unwrap().iter().take(200) {
                    if !distinct.contains(value) {
                        distinct.push(value.clone());
                    }
                }
                doc! { "$jsonSchema": { "properties": { "a": { "items": { "enum": distinct } } } } }
            }
            3 => (0..self.many()).map(|at| (format!("g{at}"), self.scalar())).collect(),
            list => {
                let operator = ["$and", "$or", "$nor"][list - 4];
                let simple = self.random.below(2) == 0;
                let outer = self.size;
                let filters = self.list(|draw| {
                    if simple {
                        let field = if operator == "$and" { "a" } else { "v" };
                        return Bson::Document(doc! { field: { "$ne": draw.number() } });
                    }
                    // Lists in lists are shorter, so that the filter does not explode.
                    draw.size = 20;
                    let filter = draw.filter(levels - 1);
                    draw.size = outer;
                    Bson::Document(filter)
                });
                doc! { operator: filters }
            }
        }
    }

    /// Draws an expression that is an array.
    fn array(&mut self, levels: usize) -> Bson {
        let size = self.size as i32;
        if levels == 0 {
            return self.random.of(&["$a", "$a", "$d", "$none"]).into();
        }
        let inner = self.array(levels - 1);
        match self.random.below(15) {
            0 => bson!({ "$range": [0, size] }),
            1 => bson!({ "$map": { "input": inner, "in": self.expression(levels - 1) } }),
            2 => bson!({ "$filter": { "input": inner, "cond": { "$in": ["$$this", self.array(levels - 1)] } } }),
            3 => bson!({ "$sortArray": { "input": inner, "sortBy": -1 } }),
            4 => bson!({ "$concatArrays": [inner, self.array(levels - 1)] }),
            5 => bson!({ "$setUnion": [inner, self.array(levels - 1)] }),
            6 => bson!({ "$setDifference": [inner, self.array(levels - 1)] }),
            7 => bson!({ "$reverseArray": inner }),
            8 => bson!({ "$maxN": { "n": size / 2, "input": inner } }),
            9 => bson!({ "$objectToArray": "$o" }),
            10 => bson!({ "$zip": { "inputs": [inner, self.array(levels - 1)], "useLongestLength": true } }),
            11 => {
                bson!({ "$regexFindAll": { "input": "$s", "regex": self.random.of(&["a", "a(b)?", "(?=b)", "x*"]) } })
            }
            12 => bson!({ "$split": ["$s", self.random.of(&[" ", "ab", "z"])] }),
            13 => bson!({ "$slice": [inner, size / 3, size] }),
            _ => bson!({ "$lastN": { "n": size, "input": inner } }),
        }
    }

    fn expression(&mut self, levels: usize) -> Bson {
        let size = self.size as i32;
        if levels == 0 {
            return self.random.of(&["$a", "$s", "$o", "$none", "$$ROOT"]).into();
        }
        let array = self.array(levels - 1);
        match self.random.below(15) {
            0 => bson!({ "$size": { "$ifNull": [array, []] } }),
            1 => bson!({ "$reduce": { "input": array, "initialValue": 0, "in": { "$add": [1, { "$size": "$a" }] } } }),
            2 => bson!({ "$setIsSubset": ["$a", { "$ifNull": [array, []] }] }),
            3 => bson!({ "$indexOfArray": [array, self.number()] }),
            4 => bson!({ "$mergeObjects": ["$o", { "$arrayToObject": { "$objectToArray": "$o" } }] }),
            5 => bson!({ "$substrCP": ["$s", size, 5] }),
            6 => bson!({ "$indexOfCP": ["$s", "zz"] }),
            7 => bson!({ "$sum": array }),
            8 => bson!({ "$switch": {
                "branches": self.list(|draw| bson!({ "case": { "$eq": ["$a", draw.number()] }, "then": 1 })), "default": 0,
            } }),
            9 => bson!({ "$or": self.list(|draw| bson!({ "$eq": ["$v", draw.number()] })) }),
            10 => bson!({ "$let": {
                "vars": (0..self.many()).map(|at| (format!("v{at}"), Bson::from("$v"))).collect::<Document>(), "in": "$$v0",
            } }),
            11 => bson!({ "$getField": { "field": format!("f{}", size / 2), "input": "$o" } }),
            12 => bson!({ "$replaceAll": { "input": "$s", "find": "a", "replacement": "b" } }),
            13 => bson!({ "$eq": [array, self.array(levels - 1)] }),
            _ => array,
        }
    }

    /// Draws an update and its array filters.
    fn update(&mut self) -> Vec<Document> {
        let numbered = |count: usize, value: &dyn Fn(usize) -> Bson| -> Document {
            // Out of order, as names often are.
            (0..count).map(|at| (format!("o.f{}", at * 7 % count.max(1)), value(at))).collect()
        };
        let count = self.size;
        match self.random.below(9) {
            0 => vec![doc! { "$set": numbered(count, &|at| Bson::Int32(at as i32)) }],
            1 => {
                let renames: Document = (0..count / 2).map(|at| (format!("f{at}"), format!("g{at}").into())).collect();
                vec![doc! { "$rename": renames }]
            }
            2 => vec![doc! { "$push": { "a": { "$each": self.list(Self::scalar), "$sort": 1 } } }],
            3 => vec![doc! { "$addToSet": { "a": { "$each": self.list(Self::scalar) } } }],
            4 => vec![doc! { "$pullAll": { "a": self.list(Self::scalar) } }],
            5 => vec![doc! { "$pull": { "a": { "$in": self.list(Self::scalar) } } }],
            6 => {
                let nor = self.list(|draw| Bson::Document(doc! { "e": draw.number() }));
                vec![doc! { "$set": { "a.$[e]": 1 } }, doc! { "$nor": nor }]
            }
            7 => vec![doc! { "$unset": numbered(count, &|_| Bson::Int32(1)) }],
            _ => vec![doc! { "$set": { "a.$[e].z": 1 } }, doc! { "e.x": { "$in": self.list(Self::scalar) } }],
        }
    }

    /// Returns a document with a field for each part of the size.
    fn fields(&self, value: impl Fn(usize) -> Bson) -> Document {
        (0..self.size).map(|at| (format!("u{at}"), value(at))).collect()
    }

    /// Draws stages with many fields, rows or branches, two of which are often combined.
    fn wide_stages(&mut self) -> Vec<Document> {
        let size = self.size as i32;
        let mut stages = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            stages.extend(match self.random.below(16) {
                0 => vec![doc! { "$project": self.fields(|_| 1.into()) }],
                1 => vec![doc! { "$project": self.fields(|at| format!("$u{}", at + 1).into()) }],
                2 => vec![doc! { "$unset": (0..size).map(|at| format!("o.f{at}")).collect::<Vec<_>>() }],
                3 => vec![doc! { "$addFields": self.fields(|at| format!("$o.f{at}").into()) }],
                4 => {
                    let sums = (0..size).map(|at| (format!("t{at}"), bson!({ "$sum": "$v" })));
                    let mut group = doc! { "_id": "$v" };
                    group.extend(sums);
                    vec![doc! { "$group": group }]
                }
                5 => vec![doc! { "$group": { "_id": self.fields(|at| format!("$o.f{at}").into()) } }],
                6 => vec![doc! { "$bucket": {
                    "groupBy": "$v", "boundaries": (0..size).collect::<Vec<_>>(), "default": -1,
                } }],
                7 => vec![doc! { "$lookup": { "from": "c", "localField": "a", "foreignField": "a", "as": "l" } }],
                8 => vec![doc! { "$lookup": {
                    "from": "c", "let": { "v": "$v" },
                    "pipeline": [{ "$unwind": "$d" }, { "$match": { "$expr": { "$ne": ["$d.x", "$$v"] } } }], "as": "l",
                } }],
                9 => vec![doc! { "$graphLookup": {
                    "from": "c", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "g",
                } }],
                10 => {
                    let facets = (0..size.min(100)).map(|at| (format!("f{at}"), bson!([{ "$unwind": "$d" }])));
                    vec![doc! { "$facet": facets.collect::<Document>() }]
                }
                11 => vec![
                    doc! { "$unwind": "$a" },
                    doc! { "$sortByCount": { "$mod": ["$a", 1 + size / 2] } },
                    doc! { "$limit": size },
                ],
                12 => vec![doc! { "$redact": { "$cond": [self.expression(1), "$$DESCEND", "$$PRUNE"] } }],
                13 => vec![doc! { "$replaceWith": { "$mergeObjects": ["$o", "$$ROOT", { "x": self.array(1) }] } }],
                14 => vec![
                    doc! { "$unwind": { "path": "$d", "includeArrayIndex": "i" } },
                    doc! { "$setWindowFields": { "sortBy": { "i": 1 }, "output": {
                        "m": { "$push": "$d.x", "window": { "documents": [-1000, 0] } },
                    } } },
                ],
                _ => vec![
                    doc! { "$project": { "v": 1, "d": 1 } },
                    doc! { "$unwind": "$d" },
                    doc! { "$densify": { "field": "d.x", "range": { "step": 0.01, "bounds": "full" } } },
                    doc! { "$fill": { "sortBy": { "d.x": 1 }, "output": { "v": { "method": "locf" } } } },
                ],
            });
        }
        stages
    }

    fn stages(&mut self) -> Vec<Document> {
        match self.random.below(8) {
            0 => vec![doc! { "$match": self.filter(2) }],
            1 => {
                let fields: Document = (0..self.size).map(|at| (format!("p{at}"), Bson::from("$v"))).collect();
                vec![doc! { "$addFields": fields }]
            }
            2 => vec![
                doc! { "$unwind": "$a" },
                doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": {
                    "t": { "$topN": { "n": 5, "sortBy": { "a": 1 }, "output": "$a" }, "window": { "documents": [-40, 40] } },
                } } },
            ],
            3 => vec![
                doc! { "$unwind": "$a" },
                doc! { "$group": { "_id": null, "t": { "$topN": { "n": 1000, "sortBy": { "a": -1 }, "output": "$a" } },
                "m": { "$minN": { "n": 1000, "input": "$a" } }, "f": { "$firstN": { "n": 1000, "input": "$a" } } } },
            ],
            4 => vec![doc! { "$unwind": "$a" }, doc! { "$sort": { "a": 1 } }, doc! { "$project": { "a": 1 } }],
            5 => vec![doc! { "$project": { "r": { "$reduce": {
                "input": { "$range": [0, 30] }, "initialValue": "$a", "in": { "$concatArrays": ["$$value", "$$value"] },
            } } } }],
            _ => vec![doc! { "$project": { "e": self.expression(3) } }],
        }
    }

    pub(super) fn call(&mut self) -> Drawn {
        let collated = self.random.below(6) == 0;
        match self.random.below(18) {
            9 => Drawn::new("find, projected", &[self.fields(|_| 1.into())], |c, arguments| {
                c.find(doc! {}).projection(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
            }),
            10 => {
                let (filter, path) = (self.filter(1), self.field());
                Drawn::new("distinct", &[filter], move |c, arguments| c.distinct(path, &arguments[0]).run().map(drop))
            }
            11 => {
                let count = self.size as i32 / 4;
                let documents: Vec<Document> = (0..count).map(|at| doc! { "v": at, "g0": [at, 1] }).collect();
                Drawn::new("insert", &documents, |c, arguments| c.insert_many(arguments).run().map(drop))
            }
            12 => Drawn::new("replace", &[self.fields(|at| (at as i32).into())], |c, arguments| {
                c.replace_one(doc! { "_id": 1 }, &arguments[0]).run().map(drop)
            }),
            13 => {
                let set = doc! { "$set": self.fields(|at| format!("$o.f{at}").into()) };
                Drawn::new("update by a pipeline", &[set, doc! { "$unset": ["a", "o"] }], |c, arguments| {
                    c.update_many(doc! {}, arguments.to_vec()).run().map(drop)
                })
            }
            14 => {
                let key = self.random.of(&["a", "d.x", "o.$**", "$**"]);
                Drawn::new(&format!("index {key}"), &[], move |c, _| {
                    let built = c.create_index(Index::on(doc! { key: 1 }).named("drawn")).run();
                    c.drop_index("drawn")?;
                    built.map(drop)
                })
            }
            15 => Drawn::new("explain", &[self.filter(2)], |c, arguments| {
                c.find(&arguments[0]).explain(ExplainVerbosity::ExecutionStats).map(drop)
            }),
            16 | 17 => Drawn::new("aggregate", &self.wide_stages(), |c, arguments| {
                c.aggregate(arguments).run()?.try_for_each(|row| row.map(drop))
            }),
            0 | 1 => {
                let name = if collated { "find, collated," } else { "find" };
                Drawn::new(name, &[self.filter(2)], move |c, arguments| {
                    let find = c.find(&arguments[0]);
                    let find = if collated { find.collation(doc! { "locale": "en", "strength": 2 }) } else { find };
                    find.run()?.try_for_each(|row| row.map(drop))
                })
            }
            2 => {
                Drawn::new("count", &[self.filter(1)], |c, arguments| c.count_documents(&arguments[0]).run().map(drop))
            }
            3 => {
                let equalities = (0..self.size).map(|at| (format!("u{at}.x"), self.number())).collect();
                Drawn::new("upsert", &[equalities], |c, arguments| {
                    c.update_one(&arguments[0], doc! { "$set": { "w": 1 } }).upsert().run().map(drop)
                })
            }
            4 | 5 => Drawn::new("update", &self.update(), |c, arguments| {
                c.update_many(doc! {}, &arguments[0]).array_filters(&arguments[1..]).run().map(drop)
            }),
            _ => Drawn::new("aggregate", &self.stages(), |c, arguments| {
                c.aggregate(arguments).run()?.try_for_each(|row| row.map(drop))
            }),
        }
    }
}

type Run = dyn Fn(&Collection<RawDocumentBuf>, &[RawDocumentBuf]) -> Result<()>;

/// A call with its arguments as bytes, so that their conversion is not part of its time.
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) arguments: Vec<RawDocumentBuf>,
    run: Box<Run>,
}

impl Drawn {
    fn new(
        name: &str,
        arguments: &[Document],
        run: impl Fn(&Collection<RawDocumentBuf>, &[RawDocumentBuf]) -> Result<()> + 'static,
    ) -> Self {
        let shown = |argument: &Document| argument.to_string().chars().take(300).collect::<String>();
        let name = format!("{name} {}", arguments.iter().map(shown).collect::<Vec<_>>().join(", "));
        Self { name, arguments: arguments.iter().map(common::raw).collect(), run: Box::new(run) }
    }

    pub(super) fn run(&self, c: &Collection<RawDocumentBuf>) -> Result<()> {
        (self.run)(c, &self.arguments)
    }
}

/// A collection of three documents with about `size` parts each, with an index and a wildcard index.
pub(super) struct Documents {
    pub(super) collection: Collection<RawDocumentBuf>,
    documents: Vec<RawDocumentBuf>,
}

impl Documents {
    pub(super) fn new(db: &slate_core::Database, size: usize) -> Self {
        let collection = db.collection::<RawDocumentBuf>("c");
        collection.create_index(Index::on(doc! { "v": 1 })).run().unwrap();
        let wildcard = Index::on(doc! { "$**": 1 }).wildcard_projection(doc! { "g0": 1, "g1": 1 });
        collection.create_index(wildcard).run().unwrap();
        let a: Vec<i32> = (0..size as i32).collect();
        let o: Document = (0..size).map(|at| (format!("f{at}"), Bson::Int32(at as i32))).collect();
        let d: Vec<Document> = (0..size as i32 / 4).map(|at| doc! { "x": at, "y": "t1" }).collect();
        let nested = (0..50).fold(bson!([1]), |inner, _| bson!([inner, 1]));
        let mut deep = doc! { "_id": 0, "v": 0, "a": a, "s": "ab ".repeat(size), "o": o, "d": d, "n": nested };
        let first = common::raw(&deep);
        deep.extend(doc! { "_id": 1, "v": 1 });
        // Enough fields that a document has no field table: the search for a field reads all fields before it.
        let mut wide = doc! { "_id": 2 };
        wide.extend((0..size).map(|at| (format!("u{at}"), Bson::Int32(at as i32))));
        let documents = vec![first, common::raw(&deep), common::raw(&wide)];
        collection.insert_many(&documents).run().unwrap();
        Self { collection, documents }
    }

    /// Undoes what a call has changed.
    pub(super) fn reset(&self) {
        self.collection.delete_many(doc! {}).run().unwrap();
        self.collection.insert_many(&self.documents).run().unwrap();
    }
}
