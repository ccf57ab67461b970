use std::collections::BTreeMap;

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{expression::Bindings, filter::Filter, raw::Doc};
use slate_store::{Size, SizeDetail};

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::{Result, clock::now_millis, namespace};

/// `{listDatabases: 1, filter, nameOnly}`: the databases that have a collection or a view. Their sizes are estimates, because measuring would read
/// all data: the size of the store, divided by the numbers of keys in the statistics.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let filter = fields.object("filter")?;
    let name_only = fields.truth("nameOnly")?.unwrap_or_default();
    fields.truth("authorizedDatabases")?;
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;
    let parse = |filter| Ok(Filter::parse_with(filter, &Bindings::new(now_millis()))?);
    let filter = filter.map(|filter| common.call.during(|| parse(filter))).transpose()?;

    let database = call.at.scope.database("listDatabases")?;
    let catalog = call.at.scope.catalog(&common.call)?;
    let mut keys: BTreeMap<String, u64> = BTreeMap::new();
    for name in catalog.names() {
        let known = catalog.collection(&name).map_or(0, |collection| collection.known_keys());
        let total = keys.entry(namespace::split(&name).0.to_owned()).or_default();
        // Adds one, so that a database without statistics has a size, too.
        *total = total.saturating_add(known).saturating_add(1);
    }
    let size = if name_only { 0 } else { known_size(&database.engine()?.size(SizeDetail::Known)?) };
    let all_keys: u64 = keys.values().fold(0, |sum, keys| sum.saturating_add(*keys));
    let (mut reply, mut total, mut shown) = (Reply::default(), 0_u64, 0_usize);
    let listed = |databases: &mut Reply| -> Result<()> {
        for (name, keys) in &keys {
            let bytes = share(size, *keys, all_keys);
            let size = i64::try_from(bytes).unwrap_or(i64::MAX);
            let document = if name_only {
                rawdoc! { "name": &**name }
            } else {
                rawdoc! { "name": &**name, "sizeOnDisk": size, "empty": false }
            };
            if filter.as_ref().map_or(Ok(true), |filter| filter.evaluate(Doc::from(&document)))? {
                databases.document(&shown.to_string(), Doc::from(&document));
                (shown, total) = (shown + 1, total.saturating_add(bytes));
            }
        }
        Ok(())
    };
    // The limits of the command end the filter also within one document.
    common.call.during(|| reply.array("databases", listed))?;
    if !name_only {
        reply.long("totalSize", i64::try_from(total).unwrap_or(i64::MAX));
        reply.long("totalSizeMb", i64::try_from(total >> 20).unwrap_or(i64::MAX));
    }
    reply.finish()
}

fn known_size(size: &Size) -> u64 {
    size.on_disk.or(size.data).or(size.in_memory).unwrap_or_default()
}

/// Returns the part of `size` that belongs to `keys` of `all` keys.
fn share(size: u64, keys: u64, all: u64) -> u64 {
    let part = u128::from(size) * u128::from(keys) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}
