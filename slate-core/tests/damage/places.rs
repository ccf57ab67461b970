//! Where the error of a read says that the damage is.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
};

use bson::{RawDocumentBuf, doc};
use slate_core::{Database, ErrorKind};

use crate::{Base, PAGE, document};

#[test]
fn a_read_by_id_names_the_collection_and_the_document_of_the_damage() {
    const ID: i32 = 2_001;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.slate");
    Base::Redb.create(&path);
    // Without a cache, so that each read is one of the file. It is damaged when it is open: redb in a debug build reads all of it before.
    let db = Database::builder(&Base::Redb.url(&path)).cache(0).open().unwrap();
    let stored = document(ID, 0);
    let mut file = File::options().write(true).open(&path).unwrap();
    let mut zeroed = 0;
    for (number, page) in fs::read(&path).unwrap().chunks(PAGE).enumerate() {
        if page.windows(stored.as_bytes().len()).any(|at| at == stored.as_bytes()) {
            file.seek(SeekFrom::Start(u64::try_from(number * PAGE).unwrap())).unwrap();
            file.write_all(&[0; PAGE]).unwrap();
            zeroed += 1;
        }
    }
    assert!(zeroed > 0, "the document is in a page of the file");
    let snapshot = db.snapshot().unwrap();
    let transaction = db.begin().unwrap();
    let read = [
        db.collection::<RawDocumentBuf>("users").find_by_id(ID),
        snapshot.collection::<RawDocumentBuf>("users").find_by_id(ID),
        transaction.collection::<RawDocumentBuf>("users").find_by_id(ID),
    ];
    for found in read {
        let error = found.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!((error.collection(), error.key()), (Some("users"), Some(&doc! { "_id": ID })), "{error}");
        assert!(error.to_string().contains("users"), "{error}");
    }
    assert!(db.collection::<RawDocumentBuf>("users").find_by_id(0).unwrap().is_some(), "other pages are read");
}
