//! Targets for files that the command-line tool reads: extended JSON, tables, dumps.

use bson::{Bson, Document, RawDocumentBuf};
use slate_cli::fuzz::documents;

use super::{Verdict, input::Input};

fn verdict(read: &[RawDocumentBuf]) -> Verdict {
    if read.is_empty() { Verdict::Refused } else { Verdict::Accepted }
}

/// Reads documents in one of three notations, possibly with damaged bytes. Undamaged ones in canonical extended JSON must be read
/// unchanged.
pub(super) fn json(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    if let Some(b'{' | b'[') = data.first() {
        return verdict(&documents("json", data));
    }
    let kind = input.byte() % 3;
    let written: Vec<Document> = (0..=input.byte() % 3).map(|_| input.document(&[], 0)).collect();
    let text = |document: &Document| match kind {
        0 => canonical(document.clone()),
        1 => Bson::Document(document.clone()).into_relaxed_extjson().to_string(),
        // Similar to the literals of MongoDB's shell.
        _ => document.to_string(),
    };
    let text = written.iter().map(text).collect::<Vec<_>>().join("\n");
    let bytes = input.perhaps_damaged(text.as_bytes());
    let read = documents("json", &bytes);
    if kind == 0 && bytes == text.as_bytes() && read.len() == written.len() {
        // Extended JSON does not contain the payload of a NaN, so the texts are compared instead of the bytes.
        let again = read.iter().map(|document| canonical(Document::try_from(document).unwrap_or_default()));
        assert_eq!(again.collect::<Vec<_>>().join("\n"), text, "documents are read as written");
    }
    verdict(&read)
}

fn canonical(document: Document) -> String {
    Bson::Document(document).into_canonical_extjson().to_string()
}

/// Reads a table: names of columns, some with types, and rows; possibly with damaged bytes.
pub(super) fn csv(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    // Input that begins with a letter is the table itself.
    if data.first().is_some_and(u8::is_ascii_alphabetic) {
        return verdict(&documents("csv", data));
    }
    let (name, delimiter) = if input.byte().is_multiple_of(2) { ("csv", ",") } else { ("tsv", "\t") };
    let columns =
        ["a", "b.c", "n.int32()", "d.date(2006-01-02)", "s.string()", "x.auto()", "f.double()", "e.decimal()"];
    let count = 1 + input.byte() % 4;
    let chosen: Vec<&str> = (0..count).map(|_| input.choice(&columns, "a")).collect();
    let mut text = chosen.join(delimiter);
    for _ in 0..=input.byte() % 4 {
        let cells: Vec<String> = chosen.iter().map(|column| cell(column, &mut input)).collect();
        text.push_str(input.choice(&["\n", "\r\n", "\n\n"], "\n"));
        text.push_str(&cells.join(delimiter));
    }
    verdict(&documents(name, &input.perhaps_damaged(text.as_bytes())))
}

/// Returns a cell, mostly a valid one for its column.
fn cell(column: &str, input: &mut Input<'_>) -> String {
    match input.byte() % 8 {
        0 => String::new(),
        1 => format!("\"{}\"\"\n\"", input.text()),
        2 => input.text(),
        _ if column.contains("date") => "2024-02-29".to_owned(),
        _ => i32::from(input.byte()).to_string(),
    }
}

/// Reads a dump: documents one after the other, possibly with damaged bytes. An undamaged one must be read unchanged.
pub(super) fn bson_dump(data: &[u8]) -> Verdict {
    let mut input = Input::new(data);
    let count = 1 + input.byte() % 4;
    let dump: Vec<u8> = (0..count).flat_map(|_| input.document(&[], 1).to_vec().unwrap_or_default()).collect();
    let bytes = input.perhaps_damaged(&dump);
    let read = documents("bson", &bytes);
    if bytes == dump {
        let again: Vec<u8> = read.iter().flat_map(|document| document.as_bytes().to_vec()).collect();
        assert!(again == dump, "a dump is read as written");
    }
    verdict(&read)
}
