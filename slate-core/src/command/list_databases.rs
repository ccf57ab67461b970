use std::collections::BTreeMap;

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{expression::Bindings, filter::Filter, raw::Doc};
use slate_store::SizeDetail;

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::{DatabaseStats, Result, clock::now_millis, namespace};

/// `{listDatabases: 1, filter, nameOnly}`: the databases that have a collection or a view.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let filter = fields.object("filter")?;
    let name_only = fields.truth("nameOnly")?.unwrap_or_default();
    fields.truth("authorizedDatabases")?;
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;
    let filter = filter.map(|filter| Filter::parse_with(filter, &Bindings::new(now_millis()))).transpose()?;

    let database = call.at.scope.database("listDatabases")?;
    // Sizes are measured by reading everything, names are known.
    let stats = if name_only { DatabaseStats::default() } else { database.stats(&common.call, SizeDetail::Known)? };
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for name in call.at.scope.catalog(&common.call)?.names() {
        let bytes = stats.collections.get(&name).map_or(0, |collection| {
            collection.indexes.iter().fold(collection.bytes, |bytes, index| bytes.saturating_add(index.bytes))
        });
        let total = sizes.entry(namespace::split(&name).0.to_owned()).or_default();
        *total = total.saturating_add(bytes);
    }
    let (mut reply, mut total, mut shown) = (Reply::default(), 0_u64, 0_usize);
    reply.array("databases", |databases| -> Result<()> {
        for (name, bytes) in &sizes {
            let size = i64::try_from(*bytes).unwrap_or(i64::MAX);
            let document = if name_only {
                rawdoc! { "name": &**name }
            } else {
                rawdoc! { "name": &**name, "sizeOnDisk": size, "empty": false }
            };
            if filter.as_ref().map_or(Ok(true), |filter| filter.evaluate(Doc::from(&document)))? {
                databases.document(&shown.to_string(), Doc::from(&document));
                (shown, total) = (shown + 1, total.saturating_add(*bytes));
            }
        }
        Ok(())
    })?;
    if !name_only {
        reply.long("totalSize", i64::try_from(total).unwrap_or(i64::MAX));
        reply.long("totalSizeMb", i64::try_from(total >> 20).unwrap_or(i64::MAX));
    }
    reply.finish()
}
