#![allow(clippy::cast_possible_truncation, reason = "the texts of tests have few lines")]

use std::io::{BufReader, Cursor, Read};

use bson::{Document, doc};
use proptest::prelude::*;

use super::*;

/// A reader that returns at most this many bytes at a time.
struct Drops(Cursor<Vec<u8>>, usize);

impl Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

/// A reader that fails at its end.
struct Cut(Cursor<Vec<u8>>);

impl Read for Cut {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("cut off")),
            length => Ok(length),
        }
    }
}

fn drops(text: impl Into<Vec<u8>>, size: usize) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(size, Drops(Cursor::new(text.into()), size)))
}

fn named(columns: &[&str]) -> InputOptions {
    let columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
    InputOptions { columns, ..InputOptions::default() }
}

/// First and last line of a record, and its document or what is wrong with it.
type Entry = (u64, u64, Result<Document, String>);

fn records(source: Box<dyn BufRead>, delimiter: u8, options: &InputOptions) -> Vec<Entry> {
    let table = Table::open(source, delimiter, options).unwrap();
    table
        .map(|record| {
            let record = record.unwrap();
            let Place::Lines { first, last } = record.place else { panic!("{}", record.place) };
            (first, last, record.document.map(|document| Document::try_from(document.as_ref()).unwrap()))
        })
        .collect()
}

fn read(text: &str, columns: Option<&[&str]>) -> Vec<Entry> {
    records(drops(text, 1 << 10), b',', &columns.map(named).unwrap_or_default())
}

/// Reads a table that has no faults.
fn documents(text: &str) -> Vec<Document> {
    read(text, None).into_iter().map(|(_, _, document)| document.unwrap()).collect()
}

/// Returns the lines of the faults in a table.
fn faults(text: &str) -> Vec<u64> {
    read(text, None).into_iter().filter(|(_, _, document)| document.is_err()).map(|(first, ..)| first).collect()
}

fn refused(text: &'static str) -> String {
    Table::open(Box::new(Cursor::new(text)), b',', &InputOptions::default()).err().unwrap().to_string()
}

#[test]
fn cells_are_typed_by_what_they_look_like_or_by_the_header() {
    let text = "_id,name,zip.string(),address.city,n.int64()\n1,Ada,007,\"Oslo, Norway\",5\n2,,,\"a\nb\",\n";
    assert_eq!(
        read(text, None),
        [
            (
                2,
                2,
                Ok(doc! { "_id": 1, "name": "Ada", "zip": "007", "address": { "city": "Oslo, Norway" }, "n": 5_i64 })
            ),
            (3, 4, Ok(doc! { "_id": 2, "address": { "city": "a\nb" } })),
        ]
    );
    assert_eq!(read("1,x\r\n", Some(&["a", "b"])), [(1, 1, Ok(doc! { "a": 1, "b": "x" }))]);
    assert_eq!(documents("a.x,b,a.y\n,2,3\n,,\n"), [doc! { "a": { "y": 3 }, "b": 2 }, doc! {}]);
}

#[test]
fn a_bad_record_costs_only_itself() {
    let text = "a.int32(),b\n1,x\nz,y\n3,\"open\n4,y,extra\n5\n";
    let found: Vec<_> = read(text, None).into_iter().map(|(line, _, document)| (line, document.is_ok())).collect();
    assert_eq!(found, [(2, true), (3, false), (4, false), (5, false), (6, true)]);
    // A record over several lines that is refused for its values does not become other records.
    let text = "a.int32(),b\nz,\"x\n7,y\"\n1,\"x\ny\",\"z\n2,x\"\n3,z\n";
    let found: Vec<_> = read(text, None).into_iter().map(|(a, b, document)| (a, b, document.is_ok())).collect();
    assert_eq!(found, [(2, 3, false), (4, 6, false), (7, 7, true)]);
}

#[test]
fn quotes_within_cells_are_read_as_they_are_written() {
    let expected = [doc! { "a": 1, "b": "5\" pipe" }, doc! { "a": 2, "b": "x" }, doc! { "a": 3, "b": "6\"" }];
    assert_eq!(documents("a,b\n1,5\" pipe\n2,x\n3,6\"\n"), expected);
    let tabs = records(drops("a\tb\n1\t5\" pipe\n2\tx\n3\t6\"\n", 3), b'\t', &InputOptions::default());
    assert_eq!(tabs.into_iter().map(|(_, _, document)| document.unwrap()).collect::<Vec<_>>(), expected);
    assert_eq!(documents("a\",b\"c\n1,2\n"), [doc! { "a\"": 1, "b\"c": 2 }]);
    assert_eq!(documents("a\n\"say \"\"hi\"\"\"\n"), [doc! { "a": "say \"hi\"" }]);
    assert_eq!(faults("a,b\n\"x\"y,1\n2,\"x\" \n\"x\"\"y\"z,3\n4,ok\n"), [2, 3, 4]);
    // The next lines are read although the quote is closed in one of them.
    let text = "a,b\n1,\"open\n2,y\n3,\"closed\",\n4,z\n";
    assert_eq!(faults(text), [2, 4]);
    assert_eq!(refused("a,\"b\n1,2\n"), "line 1: the header: a quote is not closed");
    assert!(refused("\n\na,\"b\"c\n1,2\n").starts_with("line 3: the header: text follows"));
}

#[test]
fn a_first_line_for_excel_names_the_delimiter() {
    let expected = [doc! { "a": 1, "b": "x,y" }];
    for text in ["sep=;\na;b\n1;x,y\n", "sep=;\r\na;b\r\n1;x,y\r\n", "sep=\t\na\tb\n1\tx,y\n", "sep=|\ra|b\r1|x,y"] {
        assert_eq!(documents(text), expected, "{text:?}");
    }
    assert_eq!(documents("sep=,\na,b\n1,\"x,y\"\n"), expected);
    let chosen = InputOptions { delimiter: Some(b';'), ..InputOptions::default() };
    let read = records(drops("sep=,\na;b\n1;x,y\n", 3), b',', &chosen);
    assert_eq!(read.into_iter().map(|(_, _, document)| document.unwrap()).collect::<Vec<_>>(), expected);
    assert_eq!(faults("sep=;\na;b\n1;2;3\n"), [3]);
    // Any other line is a header.
    assert_eq!(documents("sep=\n1\n"), [doc! { "sep=": 1 }]);
    assert_eq!(documents("sep=ab\n1\n"), [doc! { "sep=ab": 1 }]);
    assert_eq!(documents("a\nsep=;\n"), [doc! { "a": "sep=;" }]);
}

#[test]
fn lines_end_with_a_line_feed_or_a_carriage_return() {
    let expected = [doc! { "a": 1, "b": "x" }, doc! { "a": 2, "b": "y" }];
    for end in ["\n", "\r\n", "\r", "\r\r\n", "\n\n", "\r\r", "\r\n\r\n"] {
        for last in ["", end] {
            let text = format!("a,b{end}1,x{end}2,\"y\"{last}");
            assert_eq!(documents(&text), expected, "{text:?}");
        }
    }
    assert_eq!(documents("a,b\r\n1,\"x\r\ny\r\"\r\n"), [doc! { "a": 1, "b": "x\r\ny\r" }]);
    assert_eq!(faults("a,b\n1,x\r2,y\n3,z\n"), [2]);
    assert!(refused("a\rb\n1\n").contains("line end of another kind"));
    assert!(documents("").is_empty());
    assert!(documents("\n\r\n").is_empty());
    assert_eq!(documents("a\n\"\"\n\n1"), [doc! {}, doc! { "a": 1 }]);
    let line = |text: &str| read(text, None).first().map(|(first, last, _)| (*first, *last));
    assert_eq!(line("a\r\r\"x\ry\"\r"), Some((3, 4)));
    assert_eq!(line("\n\na\n\n\n1"), Some((6, 6)));
}

#[test]
fn numbers_and_other_types_follow_the_header() {
    let text = "n.decimal(),when.date(02.01.2006),raw.binary(hex),\"at.date_ms(dd.MM.yyyy, HH:mm)\",x.auto()\n\
                1.50,29.02.2024,00ff,\"29.02.2024, 12:30\",1.50\n";
    let raw = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0, 255] };
    assert_eq!(
        documents(text),
        [doc! {
            "n": "1.50".parse::<bson::Decimal128>().unwrap(),
            "when": bson::DateTime::from_millis(1_709_164_800_000),
            "raw": raw,
            "at": bson::DateTime::from_millis(1_709_209_800_000),
            "x": "1.50",
        }]
    );
    assert_eq!(
        documents("a,b,c,d,e,f\n1.50,5.,1e3,007,+1,1.5\n"),
        [doc! { "a": "1.50", "b": "5.", "c": "1e3", "d": "007", "e": "+1", "f": 1.5 }]
    );
    // Names that only look as if they had a type.
    assert_eq!(
        documents("Price (EUR),f(x),a.b (c),x.max().auto(),.int32()\n1,2,3,4,5\n"),
        [doc! { "Price (EUR)": 1, "f(x)": 2, "a": { "b (c)": 3 }, "x": { "max()": 4 }, "": 5 }]
    );
}

#[test]
fn notes_are_given_once_and_only_for_columns_without_a_type() {
    let notes = |text: &'static str| -> Vec<String> {
        let table = Table::open(Box::new(Cursor::new(text)), b',', &InputOptions::default()).unwrap();
        table.filter_map(|record| record.unwrap().note).collect()
    };
    let [note] = &*notes("zip,n\n10115,1\n01067,2\n10117,x\n007,3\n") else { panic!() };
    assert!(note.contains("such as 01067, strings") && note.ends_with("zip.string()"), "{note}");
    let [note] = &*notes("zip\n01067\n10115\n") else { panic!() };
    assert!(note.contains("such as 01067, strings"), "{note}");
    let [note] = &*notes("price\n1.5\n1.50\n") else { panic!() };
    assert!(note.contains("such as 1.50, strings") && note.ends_with("price.decimal()"), "{note}");
    assert!(notes("zip.string(),n\n10115,007\n01067,008\n").is_empty());
    assert!(notes("zip.auto()\n10115\n01067\n").is_empty());
    assert!(notes("\"a;b.int32()\"\n1\n").is_empty());
    assert_eq!(notes("a;b\n1;2\n3;4\n"), ["there is one column, \"a;b\": for several add --delimiter ';'"]);
    let options = InputOptions { delimiter: Some(b';'), ..InputOptions::default() };
    let mut table = open_csv(Box::new(Cursor::new("a;b\n1;\"x;y\"\n")), &options).unwrap();
    let record = table.next().unwrap().unwrap();
    assert_eq!(record.note, None);
    assert_eq!(Document::try_from(record.document.unwrap().as_ref()).unwrap(), doc! { "a": 1, "b": "x;y" });
}

#[test]
fn a_faulty_header_is_refused_once() {
    for (text, message) in [
        ("a,b,a\n1,2,3\n", "the header has the column \"a\" twice"),
        ("a, a\n1,2\n", "the header has the column \"a\" twice"),
        ("a.b,c,a.b\n1,2,3\n", "the header has the column \"a.b\" twice"),
        ("a.int32(),a.string()\n1,2\n", "the header has the column \"a\" twice"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("a,b,\n1,2,3\n", "column 3 has no name"),
        ("a,a.b\n1,2\n", "the columns \"a\" and \"a.b\" exclude each other"),
        ("a.b.c,x,a.b\n1,2,3\n", "the columns \"a.b.c\" and \"a.b\" exclude each other"),
        ("a..b\n1\n", "the column \"a..b\" has an empty name beside a dot"),
        ("a.b.\n1\n", "the column \"a.b.\" has an empty name beside a dot"),
        ("price.decmal()\n1\n", "decmal is not a type; a similar type exists: decimal"),
        ("price.Decimal()\n1\n", "a similar type exists: decimal"),
        ("price.money()\n1\n", "money is not a type; the types are auto, binary"),
        ("at.date_go()\n1\n", "has no year or no month"),
        ("b.binary(x)\n1\n", "write binary(base64), binary(base32) or binary(hex)"),
        ("n.int32(5)\n1\n", "this type has no argument"),
        ("a\0b\n1\n", "the column \"a\\0b\" has the character NUL"),
    ] {
        assert!(refused(text).contains(message), "{text:?}: {}", refused(text));
    }
    let deep = vec!["a"; 201].join(".");
    assert!(Columns::new(&[deep]).unwrap_err().contains("more than 200 documents"));
    let not_utf8 = Table::open(drops(b"a,\xff\n1,2\n".to_vec(), 5), b',', &InputOptions::default());
    assert_eq!(not_utf8.err().unwrap().to_string(), "line 1: the header: the text is not UTF-8");
}

#[test]
fn text_that_is_not_utf8_is_named_and_nul_is_kept() {
    // The two bytes of `é` in two cells are no text.
    let text = b"a,b\n\xc3,\xa9\nx,\xff\n1,y\0\n".to_vec();
    let read = records(drops(text, 2), b',', &InputOptions::default());
    let expected = Err("the text is not UTF-8".to_owned());
    assert_eq!(read, [(2, 2, expected.clone()), (3, 3, expected), (4, 4, Ok(doc! { "a": 1, "b": "y\0" }))]);
    // A byte-order mark within the text is text.
    let read = records(drops("a\n\u{feff}1\n\"open\n\u{feff}2\n", 4), b',', &InputOptions::default());
    let documents: Vec<_> = read.into_iter().map(|(.., document)| document.ok()).collect();
    assert_eq!(documents, [Some(doc! { "a": "\u{feff}1" }), None, Some(doc! { "a": "\u{feff}2" })]);
}

#[test]
fn a_row_that_a_failure_of_the_source_cuts_off_is_named() {
    let source = Box::new(BufReader::with_capacity(3, Cut(Cursor::new(b"a,b\n1,x\n2,yy".to_vec()))));
    let mut table = Table::open(source, b',', &InputOptions::default()).unwrap();
    assert!(table.next().unwrap().unwrap().document.is_ok());
    assert_eq!(table.next().unwrap().unwrap().document.unwrap_err(), "the text ends within the record");
    assert_eq!(table.next().unwrap().unwrap_err().to_string(), "cut off");
    assert!(table.next().is_none());
}

#[test]
fn long_rows_are_refused_and_the_next_are_read() {
    let long = "x".repeat(33 << 20);
    let text = format!("a,b\n1,{long}\n2,\"{long}\n3,z\n");
    let read = records(drops(text, 1 << 20), b',', &InputOptions::default());
    let found: Vec<_> =
        read.into_iter().map(|(line, last, document)| (line, last, document.map_err(|why| why.len()))).collect();
    let why = Err("the record is longer than 32 MiB".len());
    assert_eq!(found, [(2, 2, why.clone()), (3, 3, why), (4, 4, Ok(doc! { "a": 3, "b": "z" }))]);
}

#[test]
fn a_file_of_unclosed_quotes_is_read_in_reasonable_time() {
    // Each line opens a quote that the next closes, and none is closed in the end.
    let line = "a\",\"\n";
    let text = line.repeat((24 << 20) / line.len());
    let mut table = Table::open(drops(format!("a,b\n{text}"), 1 << 16), b',', &InputOptions::default()).unwrap();
    let (mut expected, mut count) = (2, 0);
    for record in table.by_ref().map(Result::unwrap) {
        let Place::Lines { first, last } = record.place else { panic!() };
        assert_eq!(first, expected);
        assert!(record.document.is_err());
        (expected, count) = (last + 1, count + 1);
    }
    assert_eq!(expected, 2 + (text.len() / line.len()) as u64);
    assert!(count < 100, "{count}");
}

/// Generates texts, mostly of the bytes that have a meaning in a table.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(&b"\"\",,\n\n\t\r;. ab10"[..]).prop_map(|byte| vec![byte]),
        2 => prop::sample::select(&["\r\n", "\"\"", ",\"", "\",", "\"\n", "a,b\n", "\"x\",", "é", "\0", "\u{feff}", "5\" pipe,"][..])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Returns the lines of a text with their ends. Lines end as those of a table.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    let end = if text.contains(&b'\r') && !text.contains(&b'\n') { b'\r' } else { b'\n' };
    text.split_inclusive(|byte| *byte == end).collect()
}

/// Checks that a text is the row of these cells: each cell as it is or in quotes, and separated by `delimiter`.
fn is_row(mut text: &[u8], cells: &[&str], delimiter: u8) -> bool {
    while let [rest @ .., b'\r' | b'\n'] = text {
        text = rest;
    }
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            let Some((first, rest)) = text.split_first() else { return false };
            if *first != delimiter {
                return false;
            }
            text = rest;
        }
        let quoted = format!("\"{}\"", cell.replace('"', "\"\""));
        let form = if text.starts_with(b"\"") { quoted.as_bytes() } else { cell.as_bytes() };
        let Some(rest) = text.strip_prefix(form) else { return false };
        text = rest;
    }
    text.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_in_a_document_or_in_a_named_line(
        text in hostile(),
        delimiter in prop::sample::select(&b",\t;"[..]),
        size in 1..40_usize,
    ) {
        let names = ["a.string()", "b.string()", "c.string()"];
        let read = records(drops(text.clone(), size), delimiter, &named(&names));
        let lines = lines(&text);
        let mut next = 1;
        for (first, last, document) in &read {
            prop_assert!(next <= *first && first <= last);
            // Only empty lines are skipped.
            for line in next..*first {
                let line = lines[line as usize - 1];
                prop_assert!(line.iter().all(|byte| b"\r\n".contains(byte)), "{:?}", read);
            }
            next = last + 1;
            let raw = lines[*first as usize - 1..*last as usize].concat();
            if let Ok(document) = document {
                let cells = ["a", "b", "c"].map(|name| document.get_str(name).unwrap_or_default());
                let fits = (1..=3).any(|count| {
                    cells[count..].iter().all(|cell| cell.is_empty()) && is_row(&raw, &cells[..count], delimiter)
                });
                prop_assert!(fits, "{:?} is not {:?}", cells, String::from_utf8_lossy(&raw));
            }
        }
        for line in next..=lines.len() as u64 {
            prop_assert!(lines[line as usize - 1].iter().all(|byte| b"\r\n".contains(byte)), "{:?}", read);
        }
        // The number of bytes that are read at once does not matter.
        prop_assert_eq!(records(drops(text, 1 << 16), delimiter, &named(&names)), read);
    }

    #[test]
    fn every_byte_of_a_header_is_in_a_name_or_named(text in hostile(), size in 1..40_usize) {
        let opened = Table::open(drops(text.clone(), size), b',', &InputOptions::default());
        let Ok(mut table) = opened else {
            let why = opened.err().unwrap().to_string();
            prop_assert!(why.contains("line ") || why.contains("column"), "{}", why);
            return Ok(());
        };
        let lines = lines(&text);
        let blank = |line: &&[u8]| line.iter().all(|byte| b"\r\n".contains(byte));
        let Some(header) = lines.iter().position(|line| !blank(line)) else {
            prop_assert!(table.next().is_none());
            return Ok(());
        };
        let mut rows = CsvRows::new(drops(text.clone(), size), None, b',');
        let (place, _) = rows.next(usize::MAX).unwrap().unwrap();
        let names: Vec<_> = rows.cells().map(Option::unwrap).collect();
        let raw = lines[header..place.last as usize].concat();
        prop_assert!(is_row(&raw, &names, b','), "{:?} is not {:?}", names, String::from_utf8_lossy(&raw));
        let mut next = place.last + 1;
        for record in table {
            let Place::Lines { first, last } = record.unwrap().place else { panic!() };
            prop_assert!((next..first).all(|line| blank(&lines[line as usize - 1])));
            next = last + 1;
        }
        prop_assert!((next..=lines.len() as u64).all(|line| blank(&lines[line as usize - 1])));
    }

    #[test]
    fn what_other_writers_write_is_read_as_the_same_cells(
        rows in prop::collection::vec(prop::collection::vec("[ab\",;\t\r\n \0é]{0,6}", 3), 1..6),
        style in prop::sample::select(&[csv::QuoteStyle::Necessary, csv::QuoteStyle::Always, csv::QuoteStyle::NonNumeric][..]),
        end in prop::sample::select(&[csv::Terminator::CRLF, csv::Terminator::Any(b'\n'), csv::Terminator::Any(b'\r')][..]),
        delimiter in prop::sample::select(&b",\t;"[..]),
        size in 1..40_usize,
    ) {
        // A line feed within cells hides that carriage returns end the lines.
        let replaced = |cell: &String| if matches!(end, csv::Terminator::Any(b'\r')) { cell.replace('\n', "x") } else { cell.clone() };
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(replaced).collect()).collect();
        let mut writer = csv::WriterBuilder::new().quote_style(style).terminator(end).delimiter(delimiter).from_writer(Vec::new());
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let text = writer.into_inner().unwrap();
        let read = records(drops(text, size), delimiter, &named(&["a.string()", "b.string()", "c.string()"]));
        let cells: Vec<Vec<String>> = read.into_iter().map(|(.., document)| {
            let document = document.unwrap();
            ["a", "b", "c"].map(|name| document.get_str(name).unwrap_or_default().to_owned()).to_vec()
        }).collect();
        prop_assert_eq!(cells, rows);
    }
}
