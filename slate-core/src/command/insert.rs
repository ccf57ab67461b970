use bson::RawDocumentBuf;
use slate_query::raw::Doc;

use super::{
    call::Call,
    concern::Concerns,
    fields::owned,
    reply::Reply,
    statements::{self, Order, WriteErrors},
};
use crate::{Result, document::borrowed, write::InsertMode};

/// `{insert: collection, documents: […], ordered}`: one transaction.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let documents = fields.objects("documents")?;
    let order = Order::take(fields)?;
    let options = statements::take_common(fields, documents.as_ref().map_or(0, Vec::len))?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let context = common.within(options);
    let documents = statements::required(documents, "insert", "documents")?;
    // The write path validates each document.
    let documents: Vec<RawDocumentBuf> = documents.into_iter().map(|doc: Doc<'_>| owned(doc)).collect::<Result<_>>()?;

    let mode = match order {
        Order::Ordered => InsertMode::Ordered,
        Order::Unordered => InsertMode::Unordered,
    };
    let outcome =
        call.at.scope.write(&context, |writer| writer.insert(collection, &borrowed(&documents), mode, &context))?;
    let mut errors = WriteErrors::default();
    for (place, error) in outcome.refused {
        errors.note(place, error);
    }
    let mut reply = Reply::default();
    reply.count("n", outcome.ids.len());
    errors.append_to(&mut reply);
    reply.finish()
}
