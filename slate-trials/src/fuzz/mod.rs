//! Calls everything that takes bytes or documents with arbitrary ones: nothing may panic, and two ways to the same result must agree. `fuzz/` runs
//! each target with libFuzzer; a test runs each with random inputs and those of `fuzz/corpus`.
//!
//! | module | task |
//! |---|---|
//! | `input` | values from bytes |
//! | `language` | filters, updates, projections, sorts, pipelines, expressions, definitions of indexes |
//! | `commands` | commands, and messages of the wire protocol with them |
//! | `encoded` | documents, stored records, index keys |
//! | `files` | backups and files of redb |
//! | `imports` | what the tool reads: extended JSON, CSV, dumps |
//! | `settings` | configurations and URLs |
//! | `corpus` | makes the inputs of `fuzz/corpus` |

mod commands;
mod corpus;
mod database;
mod encoded;
mod files;
mod imports;
mod input;
mod language;
mod settings;
mod target;

pub use corpus::write as write_corpus;
pub use target::{Target, Verdict, run};

/// All targets. Each has a minimum share of random inputs that it must accept, because a target that refuses almost everything tests nothing.
pub const TARGETS: [Target; 19] = [
    Target { name: "backup", call: files::backup, accepted: 25 },
    Target { name: "bson_dump", call: imports::bson_dump, accepted: 50 },
    Target { name: "catalog", call: files::catalog, accepted: 50 },
    Target { name: "command", call: commands::command, accepted: 15 },
    Target { name: "config", call: settings::config, accepted: 8 },
    Target { name: "csv", call: imports::csv, accepted: 20 },
    Target { name: "document", call: encoded::document, accepted: 35 },
    Target { name: "expression", call: language::expression, accepted: 50 },
    Target { name: "filter", call: language::filter, accepted: 20 },
    Target { name: "index", call: language::index, accepted: 12 },
    Target { name: "json", call: imports::json, accepted: 50 },
    Target { name: "key", call: encoded::key, accepted: 50 },
    Target { name: "message", call: commands::message, accepted: 50 },
    Target { name: "pipeline", call: language::pipeline, accepted: 30 },
    Target { name: "projection", call: language::projection, accepted: 15 },
    Target { name: "sort", call: language::sort, accepted: 30 },
    Target { name: "stored", call: encoded::stored, accepted: 35 },
    Target { name: "update", call: language::update, accepted: 8 },
    Target { name: "url", call: settings::url, accepted: 8 },
];
