//! Memory of calls while they parse and plan their arguments, compared with the size of these.
//!
//! Every operator of the language is called with large operands in every notation of an operand that some operator has, and so are the other
//! arguments: sorts, projections, index definitions, array filters, variables. Operands are made of many equal parts, among them the shortest
//! ones that BSON has, which take the most memory per byte. The collections are empty, so that a call takes only what its arguments need,
//! whether it accepts or refuses them.
//!
//! ```sh
//! SLATE_ARGUMENT_CALLS=40 SLATE_ARGUMENT_BYTES=4000000 SLATE_SEED=7 cargo test --release -p slate-core --features async --test memory arguments
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use allocation_counter::measure;
use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use slate_core::{Collection, Database, Index, OperatorKind, Result};
use slate_store_conformance::Random;

use crate::common::{
    operands::{notations, stages},
    raw,
};

/// The bytes that a call may take for each byte of its arguments, and beside them, as docs/limits.md says.
const PER_BYTE: usize = 50;
const BESIDE: usize = 1 << 18;

/// The `memory_limit` of the calls, to which compiled regular expressions are charged.
const LIMIT: usize = 1 << 20;

/// What one regular expression takes while it is compiled.
const COMPILING: usize = 24 << 20;

/// Parts of which a large operand has many.
fn parts() -> Vec<Bson> {
    vec![
        Bson::Null,
        Bson::MinKey,
        1.into(),
        "".into(),
        "$a".into(),
        "a".into(),
        "$a.b.c.d.e.f.g.h".into(),
        "a.b.c.d.e.f.g.h".into(),
        "$$ROOT".into(),
        bson!({}),
        bson!([]),
        bson!([[]]),
        bson!({ "a": 1 }),
        bson!({ "a": {} }),
        bson!({ "a.b.c.d.e.f.g.h": 1 }),
        bson!({ "a": { "$gt": 1 } }),
        bson!({ "$gt": 1 }),
        bson!({ "$not": { "$gt": 1 } }),
        bson!({ "$expr": "$a" }),
        bson!({ "$and": [{}] }),
        bson!({ "$add": [] }),
        bson!({ "$literal": 1 }),
        bson!({ "$abs": "$a" }),
        bson!({ "$elemMatch": { "a": 1 } }),
        bson!({ "type": "int" }),
        bson!({ "case": "$a", "then": 1 }),
        bson!({ "$match": {} }),
        Bson::RegularExpression(bson::Regex { pattern: "a".try_into().unwrap(), options: "".try_into().unwrap() }),
    ]
}

/// Returns an operand of about that many bytes.
fn large(random: &mut Random, bytes: usize) -> Bson {
    let parts = parts();
    let part = parts[random.index(parts.len())].clone();
    let length = raw(&doc! { "": part.clone() }).as_bytes().len() - 6;
    // With the name of an element.
    let count = bytes / (length + 6) + 1;
    match random.index(8) {
        0..4 => Bson::Array(vec![part; count]),
        4..6 => Bson::Document((0..count).map(|at| (format!("{at:x}"), part.clone())).collect()),
        6 => {
            // Documents in each other, as deep as they may be, many times.
            let deep = (0..80).fold(part, |inner, _| bson!([inner]));
            let length = raw(&doc! { "": deep.clone() }).as_bytes().len();
            Bson::Array(vec![deep; bytes / length + 1])
        }
        _ => "$a.".repeat(bytes / 3).into(),
    }
}

/// Stand for the two values of a notation, so that only the one that is used is built with large ones.
const VALUES: [&str; 2] = ["<v>", "<w>"];

/// Returns a notation with its values.
fn filled(notation: Bson, values: &[Bson; 2]) -> Bson {
    match notation {
        Bson::String(text) => match VALUES.iter().position(|value| *value == text) {
            Some(which) => values[which].clone(),
            None => Bson::String(text),
        },
        Bson::Array(elements) => elements.into_iter().map(|element| filled(element, values)).collect(),
        Bson::Document(fields) => {
            Bson::Document(fields.into_iter().map(|(name, value)| (name, filled(value, values))).collect())
        }
        other => other,
    }
}

/// Draws a notation with these values.
fn notation(random: &mut Random, values: &[Bson; 2], operands: usize) -> Bson {
    let [v, w] = VALUES.map(Bson::from);
    // Some notations have many such values.
    let mut notations = notations(&v, &w, operands.min(40));
    filled(notations.swap_remove(random.index(notations.len())), values)
}

type Documents = Collection<RawDocumentBuf>;

/// A call with arguments that are documents already.
struct Call {
    name: String,
    arguments: Vec<RawDocumentBuf>,
    run: fn(&Documents, &[RawDocumentBuf]) -> Result<()>,
}

impl Call {
    fn new(name: &str, arguments: &[Document], run: fn(&Documents, &[RawDocumentBuf]) -> Result<()>) -> Self {
        Self { name: name.into(), arguments: arguments.iter().map(raw).collect(), run }
    }

    fn bytes(&self) -> usize {
        self.arguments.iter().map(|argument| argument.as_bytes().len()).sum()
    }

    fn shown(&self) -> String {
        let shown = |argument: &RawDocumentBuf| -> String {
            Document::try_from(argument.as_ref()).unwrap().to_string().chars().take(300).collect()
        };
        format!("{}: {}", self.name, self.arguments.iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

fn aggregate(c: &Documents, stages: &[RawDocumentBuf]) -> Result<()> {
    c.aggregate(stages).run()?.try_for_each(|row| row.map(drop))
}

fn find(c: &Documents, arguments: &[RawDocumentBuf]) -> Result<()> {
    c.find(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
}

fn update(c: &Documents, arguments: &[RawDocumentBuf]) -> Result<()> {
    c.update_many(doc! {}, &arguments[0]).run().map(drop)
}

/// Draws calls with such an operand of an operator.
fn calls(random: &mut Random, kind: OperatorKind, name: &str, operand: Bson, operands: usize) -> Vec<Call> {
    let of = |operand: &Bson| doc! { name: operand.clone() };
    match kind {
        OperatorKind::Expression => {
            let stage = doc! { "$project": { "x": of(&operand) } };
            vec![match random.index(5) {
                0 => Call::new("$expr", &[doc! { "$expr": of(&operand) }], find),
                1 => Call::new("projection", &[doc! { "x": of(&operand) }], |c, arguments| {
                    c.find(doc! {}).projection(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
                }),
                2 => Call::new("update by a pipeline", &[stage], |c, arguments| {
                    c.update_many(doc! {}, arguments.to_vec()).run().map(drop)
                }),
                3 => Call::new("variables", &[doc! { "x": of(&operand) }], |c, arguments| {
                    c.find(doc! {}).let_variables(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
                }),
                _ => Call::new("$project", &[stage], aggregate),
            }]
        }
        OperatorKind::Accumulator => {
            vec![Call::new("$group", &[doc! { "$group": { "_id": null, "x": of(&operand) } }], aggregate)]
        }
        OperatorKind::WindowFunction => {
            let mut output = of(&operand);
            if random.index(2) == 0 {
                output.insert("window", doc! { "documents": [-50, 50] });
            }
            let stage = doc! { "$setWindowFields": { "sortBy": { "i": 1 }, "output": { "x": output } } };
            vec![Call::new("$setWindowFields", &[stage], aggregate)]
        }
        OperatorKind::Filter => {
            let (of_field, alone) = (doc! { "a": of(&operand) }, of(&operand));
            match random.index(4) {
                0 => vec![Call::new("partial index", &[of_field], |c, arguments| {
                    let built = c.create_index(Index::on(doc! { "b": 1 }).only(&arguments[0]).named("drawn")).run();
                    c.drop_index("drawn")?;
                    built.map(drop)
                })],
                1 => vec![Call::new("array filter", &[doc! { "e": of(&operand) }], |c, arguments| {
                    let update = c.update_many(doc! {}, doc! { "$set": { "a.$[e]": 1 } });
                    update.array_filters(&arguments[..1]).run().map(drop)
                })],
                _ => vec![Call::new("find", &[of_field], find), Call::new("find", &[alone], find)],
            }
        }
        OperatorKind::Update => {
            let mut calls = vec![Call::new("update", &[doc! { name: { "a": operand.clone() } }], update)];
            if operand.as_document().is_some() {
                calls.push(Call::new("update", &[of(&operand)], update));
            }
            calls
        }
        OperatorKind::Stage => {
            let mut calls = vec![Call::new("aggregate", &[of(&operand)], aggregate)];
            let stages = stages(name, "a", "b", operands);
            if !stages.is_empty() {
                calls.push(Call::new("aggregate", &stages, aggregate));
            }
            calls
        }
        other => panic!("no call for {other:?}"),
    }
}

/// Draws calls with arguments that are no operand.
fn others(random: &mut Random, bytes: usize) -> Vec<Call> {
    let operand = large(random, bytes);
    let document = match &operand {
        Bson::Document(document) => document.clone(),
        other => doc! { "a": other.clone() },
    };
    let one = std::slice::from_ref(&document);
    vec![
        Call::new("filter", one, find),
        Call::new("projection", one, |c, arguments| {
            c.find(doc! {}).projection(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
        }),
        Call::new("sort", one, |c, arguments| {
            c.find(doc! {}).sort(&arguments[0]).run()?.try_for_each(|row| row.map(drop))
        }),
        Call::new("keys of an index", one, |c, arguments| {
            c.create_index(Index::on(&arguments[0]).named("drawn")).run().and_then(|_| c.drop_index("drawn")).map(drop)
        }),
        Call::new("projection of a wildcard index", one, |c, arguments| {
            let index = Index::on(doc! { "$**": 1 }).wildcard_projection(&arguments[0]).named("drawn");
            c.create_index(index).run().and_then(|_| c.drop_index("drawn")).map(drop)
        }),
        Call::new("upsert", one, |c, arguments| {
            let result = c.update_many(&arguments[0], doc! { "$set": { "w": 1 } }).upsert().run().map(drop);
            c.delete_many(doc! {}).run()?;
            result
        }),
        Call::new("stages", &[doc! { "$project": document.clone() }, doc! { "$set": document.clone() }], aggregate),
        Call::new("replacement", one, |c, arguments| c.replace_one(doc! {}, &arguments[0]).run().map(drop)),
        Call::new("$in", &[doc! { "a": { "$in": operand.clone() } }], find),
        Call::new("delete", &[doc! { "$or": operand }], |c, arguments| c.delete_many(&arguments[0]).run().map(drop)),
    ]
}

/// The most that a call has taken, in bytes for each byte of its arguments.
#[derive(Default)]
struct Worst {
    calls: usize,
    accepted: usize,
    broken: Vec<(usize, String)>,
    most: usize,
}

impl Worst {
    fn measure(&mut self, c: &Documents, call: &Call) {
        let bytes = call.bytes();
        let mut result = Ok(());
        let taken = measure(|| result = (call.run)(c, &call.arguments)).bytes_max as usize;
        self.calls += 1;
        self.accepted += usize::from(result.is_ok());
        let shown = call.shown();
        let beside = match shown.to_lowercase() {
            shown if shown.contains("$regex") => BESIDE + LIMIT + COMPILING,
            shown if shown.contains("/a/") => BESIDE + LIMIT,
            _ => BESIDE,
        };
        let per_byte = taken.saturating_sub(beside) / bytes.max(1);
        self.most = self.most.max(per_byte);
        if taken > PER_BYTE * bytes + beside {
            let result = result.map_err(|error| error.code());
            self.broken.push((per_byte, format!("{per_byte} times {bytes} bytes, {result:?}: {shown}")));
        }
    }
}

#[test]
fn parsed_arguments_take_at_most_fifty_times_their_bytes() {
    let variable = |name: &str, otherwise: usize| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let (count, bytes) = (variable("SLATE_ARGUMENT_CALLS", 1), variable("SLATE_ARGUMENT_BYTES", 60_000));
    let seed = variable("SLATE_SEED", 1) as u64;
    let collection: Documents = Database::builder("memory:").memory_limit(LIMIT).open().unwrap().collection("c");
    collection.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    let mut worst = Worst::default();
    let mut random = Random::new(seed);
    for kind in OperatorKind::ALL {
        for name in kind.names() {
            for _ in 0..count {
                let size = (bytes >> random.index(3)).max(1);
                let values = [large(&mut random, size), large(&mut random, size / 4)];
                let operand = match random.index(3) {
                    0 => values[0].clone(),
                    _ => notation(&mut random, &values, size / 20),
                };
                for call in calls(&mut random, kind, name, operand, size / 20) {
                    worst.measure(&collection, &call);
                }
            }
        }
    }
    for _ in 0..count * 5 {
        for call in others(&mut random, bytes) {
            worst.measure(&collection, &call);
        }
    }
    let Worst { calls, accepted, mut broken, most } = worst;
    eprintln!("{calls} calls, {accepted} of them accepted, took at most {most} times their bytes");
    broken.sort();
    broken.reverse();
    let shown: Vec<&str> = broken.iter().map(|(_, shown)| &**shown).take(40).collect();
    assert!(broken.is_empty(), "{} calls of seed {seed}: {shown:#?}", broken.len());
    assert!(accepted > calls / 10, "{accepted} of {calls} calls were accepted");
}
