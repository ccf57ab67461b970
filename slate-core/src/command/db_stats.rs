use bson::RawDocumentBuf;
use slate_store::SizeDetail;

use super::{call::Call, coll_stats, concern::Concerns, reply::Reply};
use crate::{Result, namespace, stats::sizes};

/// `{dbStats: 1, scale}`: the total sizes of the collections and indexes of a database.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let scale = coll_stats::scale(&mut call.fields)?;
    let has_free = call.fields.integer("freeStorage")?.is_some_and(|wanted| wanted != 0);
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;

    let database = call.at.scope.database("dbStats")?;
    let detail = if has_free { SizeDetail::Measured(database.lock_timeout()) } else { SizeDetail::Known };
    let mut stats = database.stats(&common.call, detail)?;
    let is_own = |name: &str| namespace::split(name).0 == common.database;
    stats.collections.retain(|name, _| is_own(name));
    stats.views = call.at.scope.catalog(&common.call)?.views().filter(|view| is_own(&view.name)).count();
    let mut sizes = sizes::of_database(&stats, scale);
    if let Some(free) = stats.storage.free.filter(|_| has_free) {
        sizes.insert("totalFreeStorageSize", sizes::scaled(free, scale));
    }
    let mut reply = Reply::default();
    reply.text("db", &common.database);
    reply.fields(&sizes)?;
    reply.finish()
}
