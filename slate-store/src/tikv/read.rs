//! Reads at one timestamp: many keys, or ranges page by page. Callers count the round trips.

use std::{collections::HashMap, sync::Arc};

use tikv_client::{Error as ClientError, Key, KvPair};
use tokio::task::JoinSet;

use super::{
    after,
    cluster::{Cluster, persist},
    error::{self, ReadFailure},
    regions::{FirstPart, Regions},
    value::{self, Chunks, Stored},
};
use crate::{Context, Error, Keyspace, ReadEnd, Result};

/// Maximum number of keys of a request. Their values then have at most 256 MiB.
pub(super) const MAX_KEYS: usize = 256;

/// Maximum number of chunks of a request.
pub(super) const MAX_CHUNKS: u32 = 8;

/// Target size of a page of a scan, in bytes.
const PAGE_BYTES: usize = 2 << 20;

/// Number of entries of the first page, and maximum number of entries of a page.
pub(super) const FIRST_PAGE: u32 = 64;
const MAX_PAGE: u32 = 4096;

/// A range of stored keys: includes the first key, excludes the second.
pub(super) type Range = (Vec<u8>, Vec<u8>);

/// The values of stored keys.
pub(super) type Values = HashMap<Vec<u8>, Vec<u8>>;

/// Reads stored keys, which must be sorted and distinct. The result has no entry for a missing key.
pub(super) async fn many(cluster: Arc<Cluster>, at: u64, keys: Vec<Vec<u8>>) -> Result<Values> {
    let mut requests = JoinSet::new();
    for keys in keys.chunks(MAX_KEYS) {
        requests.spawn(few(Arc::clone(&cluster), at, keys.to_vec()));
    }
    let mut values = Values::with_capacity(keys.len());
    while let Some(found) = requests.join_next().await {
        values.extend(found.map_err(error::unanswered)??);
    }
    Ok(values)
}

/// Returns the number of requests for these sorted keys.
pub(super) fn requests_of(cluster: &Cluster, keys: &[Vec<u8>]) -> u64 {
    keys.chunks(MAX_KEYS).map(|keys| cluster.regions.spread(keys.iter().map(Vec::as_slice))).sum()
}

async fn few(cluster: Arc<Cluster>, at: u64, keys: Vec<Vec<u8>>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let request = || {
        let (mut snapshot, keys) = (cluster.snapshot(at), keys.clone());
        async move {
            // A missing key is left out of the answer, or has an empty value; no stored value is empty.
            let pairs = snapshot.batch_get(keys).await?.filter(|KvPair(_, value)| !value.is_empty());
            Ok::<Vec<(Vec<u8>, Vec<u8>)>, ClientError>(pairs.map(|KvPair(key, value)| (key.into(), value)).collect())
        }
    };
    persist(cluster.options.patience, request).await.map_err(unreadable)
}

fn unreadable(error: ClientError) -> Error {
    error::of_request(error, "the cluster does not answer a read")
}

/// Reads the chunks of a value and joins them.
pub(super) async fn chunks(cluster: Arc<Cluster>, at: u64, keyspace: Keyspace, chunks: Chunks) -> Result<Vec<u8>> {
    let keys: Vec<Vec<u8>> = (0..chunks.count).map(|chunk| cluster.layout.chunk(keyspace, chunks.at, chunk)).collect();
    let mut bytes = Vec::with_capacity(keys.len() * value::CHUNK);
    for keys in keys.chunks(usize::try_from(MAX_CHUNKS).unwrap_or(1)) {
        let found: Values = few(Arc::clone(&cluster), at, keys.to_vec()).await?.into_iter().collect();
        for key in keys {
            let chunk = found.get(key).and_then(|chunk| chunk.get(1..));
            let missing = || Error::Corrupt(Box::new(Context::new("a part of a large value is missing")));
            bytes.extend_from_slice(chunk.ok_or_else(missing)?);
        }
    }
    Ok(bytes)
}

/// In which direction a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Maximum number of regions of a page. The client reads them concurrently, and requests an equal share of the page from each.
const MAX_REGIONS: usize = 16;

/// Returns how many regions the next page may read after a page of `regions` regions without entries. Empty regions, which deletes leave behind,
/// are passed quickly in this way. After a page with entries the next one reads one region again.
fn after_nothing(regions: usize) -> usize {
    (regions * 2).min(MAX_REGIONS)
}

/// The part of a range that one request reads.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) range: Range,
    /// Whether the range continues after this part.
    pub(super) has_rest: bool,
    /// Maximum number of entries or keys: requested from each region, and returned by the client for all together.
    pub(super) most: u32,
    /// Number of regions, each of which receives a request; 1 if it is unknown.
    pub(super) regions: u32,
}

/// Returns the part of a range in its first regions, at most `count`. A share of `most` entries is requested from each region, because the client
/// drops entries above its limit. If the first region is unknown, the part is the whole range, over any number of regions, with few entries.
pub(super) async fn part_of(regions: &Regions, range: Range, direction: Direction, count: usize, most: u32) -> Part {
    match regions.first_part(range.clone(), direction, count).await {
        Some(FirstPart { range, has_rest, regions }) => Part { range, has_rest, most: most.div_ceil(regions), regions },
        None => Part { range, has_rest: false, most: most.min(FIRST_PAGE), regions: 1 },
    }
}

/// A part of a range, in ascending order of stored keys.
pub(super) struct Page {
    pub(super) entries: Vec<(Vec<u8>, Stored)>,
    /// Bytes of keys and values.
    pub(super) bytes: usize,
    /// Number of requests for this page: several after empty regions, or after an answer that was too long.
    pub(super) requests: u64,
    /// Whether the range may have more entries in the direction of the read.
    pub(super) has_more: bool,
    /// The key at which further entries begin, if not directly after the page: the end of a region.
    pub(super) end: Option<Vec<u8>>,
    /// Number of entries to request for the next page.
    pub(super) next: u32,
}

/// Reads up to `most` first entries of a range; fewer if they exceed the length of a message or are not all in the same regions. A page without
/// entries is the end of the range. `end` can interrupt the walk over empty regions.
pub(super) async fn page(
    cluster: Arc<Cluster>,
    at: u64,
    mut range: Range,
    direction: Direction,
    most: u32,
    end: Option<ReadEnd>,
) -> Result<Page> {
    let (mut regions, mut requests) = (1, 0);
    loop {
        let part = part_of(&cluster.regions, range.clone(), direction, regions, most).await;
        let mut page = of_part(Arc::clone(&cluster), at, &part, direction, most).await?;
        let Part { range: part, has_rest, .. } = part;
        requests += page.requests;
        page.requests = requests;
        if page.has_more || !has_rest {
            page.has_more |= has_rest;
            return Ok(page);
        }
        let border = match direction {
            Direction::Up => part.1,
            Direction::Down => part.0,
        };
        if !page.entries.is_empty() {
            (page.has_more, page.end) = (true, Some(border));
            return Ok(page);
        }
        end.as_ref().map_or(Ok(()), |end| end())?;
        cluster.count(1, 0);
        regions = after_nothing(regions);
        match direction {
            Direction::Up => range.0 = border,
            Direction::Down => range.1 = border,
        }
    }
}

/// Reads the first entries of a part of a range; the client requests `part.most` from each region in it. `most` is the number of entries that the
/// page was planned with; the size of the next one is computed from it.
async fn of_part(cluster: Arc<Cluster>, at: u64, part: &Part, direction: Direction, most: u32) -> Result<Page> {
    let Part { range: (start, end), most: mut share, regions, .. } = part.clone();
    let mut requests = 0;
    let mut pairs = loop {
        let request = || {
            let (mut snapshot, range) = (cluster.snapshot(at), Key::from(start.clone())..Key::from(end.clone()));
            async move {
                let pairs: Vec<KvPair> = match direction {
                    Direction::Up => snapshot.scan(range, share).await?.collect(),
                    Direction::Down => snapshot.scan_reverse(range, share).await?.collect(),
                };
                Ok::<_, ClientError>(pairs)
            }
        };
        requests += u64::from(regions);
        match persist(cluster.options.patience, request).await {
            Err(error) if error::of_read(&error) == ReadFailure::TooLong && share > 1 => share = share.div_ceil(8),
            answer => break answer.map_err(unreadable)?,
        }
    };
    let has_more = pairs.len() >= usize::try_from(share).unwrap_or(usize::MAX);
    let bytes: usize = pairs.iter().map(|KvPair(key, value)| key.len() + value.len()).sum();
    let next = next_page(most, pairs.len(), bytes);
    if direction == Direction::Down {
        pairs.reverse();
    }
    let entry = |KvPair(key, value): KvPair| Stored::read(value).map(|stored| (key.into(), stored));
    let entries = pairs.into_iter().map(entry).collect::<Result<_>>()?;
    Ok(Page { entries, bytes, requests, has_more, end: None, next })
}

/// Returns the number of entries to request after a page of `entries` entries and `bytes` bytes, planned with `most`.
fn next_page(most: u32, entries: usize, bytes: usize) -> u32 {
    let each = (bytes / entries.max(1)).max(1);
    let fit = u32::try_from(PAGE_BYTES / each).unwrap_or(MAX_PAGE);
    fit.clamp(1, MAX_PAGE.min(most.saturating_mul(4)))
}

/// The rest of a range whose keys are read.
pub(super) struct Unread {
    range: Range,
    /// Number of regions that the next page may read.
    regions: usize,
}

impl Unread {
    pub(super) fn all(range: Range) -> Self {
        Self { range, regions: 1 }
    }
}

/// The first keys of a range, and the rest.
pub(super) struct Keys {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) requests: u64,
    pub(super) rest: Option<Unread>,
}

/// Reads up to `most` first keys of a range without values, from one region, or from several after regions without keys. An empty result is not the
/// end of the range.
pub(super) async fn keys(cluster: Arc<Cluster>, at: u64, Unread { range, regions }: Unread, most: u32) -> Result<Keys> {
    let end = range.1.clone();
    let Part { range: (start, part_end), has_rest, most, regions: requests } =
        part_of(&cluster.regions, range, Direction::Up, regions, most).await;
    let request = || {
        let (mut snapshot, range) = (cluster.snapshot(at), Key::from(start.clone())..Key::from(part_end.clone()));
        async move { Ok::<Vec<Vec<u8>>, ClientError>(snapshot.scan_keys(range, most).await?.map(Into::into).collect()) }
    };
    let keys = persist(cluster.options.patience, request).await.map_err(unreadable)?;
    let is_full = keys.len() >= usize::try_from(most).unwrap_or(usize::MAX);
    let rest = match keys.last().filter(|_| is_full) {
        Some(last) => Some(Unread::all((after(last.clone()), end))),
        None => has_rest.then(|| {
            let regions = if keys.is_empty() { after_nothing(regions) } else { 1 };
            Unread { range: (part_end, end), regions }
        }),
    };
    Ok(Keys { keys, requests: u64::from(requests), rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_until_they_have_enough_bytes() {
        assert_eq!(next_page(64, 64, 64 * 100), 256);
        assert_eq!(next_page(4096, 4096, 4096 * 100), 4096);
        assert_eq!(next_page(4096, 4096, 4096 << 20), 2, "values of a mebibyte");
        assert_eq!(next_page(64, 0, 0), 256);
    }
}
