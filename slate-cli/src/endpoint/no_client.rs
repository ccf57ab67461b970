//! In place of `server` in a build without the feature `client`: there is no value of [`Server`].

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use super::OnSignal;
use crate::{
    failure::{Failure, Result},
    interrupt::Interrupt,
};

#[derive(Clone)]
pub(crate) enum Server {}

pub(crate) enum ServerRows {}

pub(crate) struct Inserted {
    pub(crate) ids: BTreeMap<usize, Bson>,
    pub(crate) refused: Vec<(usize, Failure)>,
}

impl Server {
    pub(crate) fn connect(_: &str, _: Interrupt) -> Result<Self> {
        Err(Failure::usage("this program was built without the client of servers")
            .hint("install slate with `cargo install --path slate-cli --features client`"))
    }

    pub(crate) fn run(&self, _: RawDocumentBuf) -> Result<Document> {
        match *self {}
    }

    pub(crate) fn write(&self, _: &Document) -> Result<Document> {
        match *self {}
    }

    pub(crate) fn rename(&self, _: &str, _: &str) -> Result<()> {
        match *self {}
    }

    pub(crate) fn write_to_end(&self, _: &Document) -> Result<Document> {
        match *self {}
    }

    pub(crate) fn run_on_admin(&self, _: RawDocumentBuf) -> Result<Document> {
        match *self {}
    }

    pub(crate) fn rows(&self, _: &Document) -> Result<ServerRows> {
        match *self {}
    }

    pub(crate) fn insert(&self, _: &str, _: &[RawDocumentBuf], _: OnSignal) -> Result<Inserted> {
        match *self {}
    }
}

impl ServerRows {
    pub(crate) fn next<T>(&mut self, _: impl FnOnce(&RawDocument) -> Result<T>) -> Result<Option<T>> {
        match *self {}
    }
}
