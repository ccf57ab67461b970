//! Which region contains a key, and which node leads it.
//!
//! The client knows this, too, but does not expose it. It is needed where a request must be for one region: for a page of a scan, because the
//! client sends its limit to *every* region in the range, and for reads of the latest commit ([`latest`](super::latest)).
//!
//! A cached region can be outdated. Then a page is shorter, or is read from several regions. A node refuses a request for a region that it does not
//! lead, and the region is removed from the cache. So an outdated region is used as long as no placement driver answers.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prost::Message;
use tikv_client::{Key, SecurityManager};
use tokio::{task::JoinSet, time::timeout};
use tonic::{Request, client::Grpc, codec::ProstCodec, codegen::http::uri::PathAndQuery, transport::Channel};

use super::{
    address::Address,
    error,
    nodes::{BACKOFF, Nodes, lock},
    proto,
    read::{Direction, Range},
};
use crate::Result;

/// Timeout of optional requests to a placement driver, and of connecting to a node.
const PATIENCE: Duration = Duration::from_millis(500);

/// Age at which a cached region counts as outdated and is requested again, because it may have split.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Maximum number of cached regions, of some 200 bytes each. That many hold about twenty billion documents.
const MAX_CACHED: usize = 1 << 18;

pub(super) struct Regions {
    drivers: Vec<String>,
    security: Arc<SecurityManager>,
    /// Cached regions by their first keys, each with the time of its request.
    cached: Mutex<BTreeMap<Vec<u8>, (Region, Instant)>>,
    pub(super) nodes: Nodes,
    driver: tokio::sync::Mutex<Driver>,
    round_trips: AtomicU64,
    requests: AtomicU64,
}

/// A range of keys that is stored and replicated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) id: u64,
    pub(super) epoch: proto::Epoch,
    pub(super) leader: proto::Peer,
    pub(super) start: Vec<u8>,
    /// The end of the range, excluded; `None` for the last region.
    pub(super) end: Option<Vec<u8>>,
}

impl Region {
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}

/// The part of a range that is in its first regions, in reading direction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FirstPart {
    pub(super) range: Range,
    /// Whether the range continues after this part.
    pub(super) has_rest: bool,
    /// The number of regions of the part.
    pub(super) regions: u32,
}

/// The state of the placement drivers.
#[derive(Default)]
enum Driver {
    #[default]
    Unknown,
    Answers(Leader),
    /// No driver has answered in time.
    BackingOff {
        until: Instant,
    },
}

impl Driver {
    fn backing_off() -> Self {
        Self::BackingOff { until: Instant::now() + BACKOFF }
    }
}

/// The leader of the placement drivers: the connection to it, and the id of its cluster.
#[derive(Clone)]
pub(super) struct Leader {
    pub(super) channel: Channel,
    pub(super) cluster: u64,
}

impl Regions {
    pub(super) fn new(address: &Address) -> Result<Self> {
        let unreadable = |failed| error::of_request(failed, "the certificates are not readable");
        let security = match &address.tls {
            Some(tls) => SecurityManager::load(&tls.authority, &tls.certificate, &tls.key).map_err(unreadable)?,
            None => SecurityManager::default(),
        };
        let drivers = address.drivers.clone();
        Ok(Self {
            drivers,
            security: Arc::new(security),
            cached: Mutex::default(),
            nodes: Nodes::default(),
            driver: Default::default(),
            round_trips: AtomicU64::default(),
            requests: AtomicU64::default(),
        })
    }

    /// Returns the number of round trips to placement drivers, and of reads of the latest commit.
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Returns the number of requests to placement drivers, and of reads of the latest commit.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts a round trip of several concurrent requests.
    pub(super) fn count_requests(&self, requests: usize) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(u64::try_from(requests).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the number of regions that contain these sorted keys. Adjacent keys whose regions are not cached count as keys of one region.
    pub(super) fn spread<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> u64 {
        let (mut regions, mut last) = (0, None::<Option<Region>>);
        for key in keys {
            if matches!(&last, Some(Some(region)) if region.contains(key)) {
                continue;
            }
            let found = self.cached(key).map(|(region, _)| region);
            if found.is_some() || !matches!(last, Some(None)) {
                regions += 1;
            }
            last = Some(found);
        }
        regions
    }

    /// Returns the cached region of a key, and its age.
    pub(super) fn cached(&self, key: &[u8]) -> Option<(Region, Duration)> {
        let cached = lock(&self.cached);
        let upto = (Bound::Unbounded, Bound::Included(key));
        let (_, (region, since)) = cached.range::<[u8], _>(upto).next_back()?;
        region.contains(key).then(|| (region.clone(), since.elapsed()))
    }

    pub(super) fn cache(&self, region: Region) {
        let mut cached = lock(&self.cached);
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(region.start.clone(), (region, Instant::now()));
    }

    /// Returns the region of a key; `None` if it is not cached and no placement driver answers in time.
    pub(super) async fn of(&self, key: &[u8]) -> Option<Region> {
        current(self.cached(key), self.request("/pdpb.PD/GetRegion", key)).await
    }

    /// Returns the part of a range in its first regions in `direction`, at most `count`. `None` if the first region is unknown.
    pub(super) async fn first_part(
        &self,
        (start, end): Range,
        direction: Direction,
        count: usize,
    ) -> Option<FirstPart> {
        let (mut reached, mut regions) = (None, 0);
        for left in (1..=count).rev() {
            let beyond = match direction {
                Direction::Up => {
                    let from = reached.as_ref().unwrap_or(&start);
                    if left > 1 && self.cached(from).is_none_or(|(_, age)| age >= MAX_AGE) {
                        self.request_several(from, left).await;
                    }
                    self.of(from).await.map(|region| region.end.filter(|region_end| *region_end < end))
                }
                Direction::Down => {
                    let region = self.below(reached.as_ref().unwrap_or(&end)).await;
                    region.map(|region| Some(region.start).filter(|region_start| *region_start > start))
                }
            };
            let Some(beyond) = beyond else { break };
            regions += 1;
            match beyond {
                Some(border) => reached = Some(border),
                // The last region of the range.
                None => return Some(FirstPart { range: (start, end), has_rest: false, regions }),
            }
        }
        let border = reached?;
        let range = match direction {
            Direction::Up => (start, border),
            Direction::Down => (border, end),
        };
        Some(FirstPart { range, has_rest: true, regions })
    }

    /// Returns the region of the greatest keys below `end`.
    async fn below(&self, end: &[u8]) -> Option<Region> {
        let known = {
            let cached = lock(&self.cached);
            let below = cached.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(end))).next_back();
            let reaches = |region: &Region| region.end.as_ref().is_none_or(|last| *end <= **last);
            below
                .filter(|(_, (region, _))| reaches(region))
                .map(|(_, (region, since))| (region.clone(), since.elapsed()))
        };
        let request = async {
            let region = self.of(end).await?;
            if *region.start < *end { Some(region) } else { self.request("/pdpb.PD/GetPrevRegion", end).await }
        };
        current(known, request).await
    }

    pub(super) fn forget(&self, region: &Region) {
        lock(&self.cached).remove(&region.start);
    }

    /// Returns a connection to the node that leads a region; `None` if it cannot be opened in time.
    pub(super) async fn node(&self, region: &Region) -> Option<Channel> {
        let node = region.leader.store;
        if let Some(channel) = self.nodes.channel(node) {
            return Some(channel);
        }
        let Some(address) = self.of_leader(|leader| request_address(leader, node)).await? else {
            self.forget(region);
            return None;
        };
        match timeout(PATIENCE, connect(&self.security, &address)).await {
            Ok(Some(channel)) => {
                self.nodes.connected(node, channel.clone());
                Some(channel)
            }
            Ok(None) => {
                self.lost(region);
                None
            }
            Err(_) => {
                self.late(region);
                None
            }
        }
    }

    /// Removes a region and the connection to its leader from the caches, after a failed request.
    pub(super) fn lost(&self, region: &Region) {
        self.nodes.disconnect(region.leader.store);
        self.forget(region);
    }

    /// Removes a region from the cache, and begins a back-off of its leader, which did not answer in time.
    pub(super) fn late(&self, region: &Region) {
        self.nodes.late(region.leader.store);
        self.forget(region);
    }

    async fn request(&self, method: &'static str, key: &[u8]) -> Option<Region> {
        let region = self.of_leader(|leader| request_region(leader, method, key)).await?;
        self.cache(region.clone());
        Some(region)
    }

    /// Caches up to `count` regions from that of `key` on, with one request.
    async fn request_several(&self, key: &[u8], count: usize) {
        let regions = self.of_leader(|leader| request_regions(leader, key, count)).await;
        regions.into_iter().flatten().for_each(|region| self.cache(region));
    }

    /// Sends an optional request to the leading placement driver. Returns `None` without a useful answer in time.
    async fn of_leader<T, F>(&self, request: impl FnOnce(Leader) -> F) -> Option<T>
    where
        F: Future<Output = Option<T>>,
    {
        let leader = self.leader().await?;
        self.count_requests(1);
        match timeout(PATIENCE, request(leader)).await {
            Ok(Some(answer)) => Some(answer),
            // The driver may no longer be the leader.
            Ok(None) => {
                *self.driver.lock().await = Driver::Unknown;
                None
            }
            Err(_) => {
                *self.driver.lock().await = Driver::backing_off();
                None
            }
        }
    }

    /// Returns the leading placement driver; `None` if it is in a back-off, or is not found in time.
    async fn leader(&self) -> Option<Leader> {
        let mut driver = self.driver.lock().await;
        match &*driver {
            Driver::Answers(leader) => return Some(leader.clone()),
            Driver::BackingOff { until } if Instant::now() < *until => return None,
            Driver::Unknown | Driver::BackingOff { .. } => {}
        }
        // Set before the search: if this call is dropped during it, other callers do not repeat the wait.
        *driver = Driver::backing_off();
        let found = timeout(PATIENCE, self.find_leader()).await.ok().flatten()?;
        *driver = Driver::Answers(found.clone());
        Some(found)
    }

    /// Searches for the leader by requests to all placement drivers at once, because some may not answer. Includes drivers in a back-off.
    pub(super) async fn find_leader(&self) -> Option<Leader> {
        let mut answers = JoinSet::new();
        for driver in &self.drivers {
            answers.spawn(leader_by(Arc::clone(&self.security), driver.clone()));
        }
        while let Some(answer) = answers.join_next().await {
            if let Ok(Some(leader)) = answer {
                return Some(leader);
            }
        }
        None
    }
}

/// Returns a cached region, or the requested one if that is outdated; without an answer, the outdated one.
async fn current(cached: Option<(Region, Duration)>, request: impl Future<Output = Option<Region>>) -> Option<Region> {
    match cached {
        Some((region, age)) if age < MAX_AGE => Some(region),
        outdated => request.await.or(outdated.map(|(region, _)| region)),
    }
}

async fn request_region(Leader { channel, cluster }: Leader, method: &'static str, key: &[u8]) -> Option<Region> {
    let region_key = Key::from(key.to_vec()).to_encoded().into();
    let request = proto::GetRegion { header: Some(proto::Header { cluster }), region_key };
    let answer: proto::RegionAnswer = call(channel, method, request).await.ok()?;
    read_region(answer.region?, answer.leader?)
}

async fn request_regions(Leader { channel, cluster }: Leader, key: &[u8], count: usize) -> Option<Vec<Region>> {
    let start_key = Key::from(key.to_vec()).to_encoded().into();
    let limit = i32::try_from(count).ok()?;
    let request = proto::ScanRegions { header: Some(proto::Header { cluster }), start_key, limit };
    let answer: proto::ScanRegionsAnswer = call(channel, "/pdpb.PD/ScanRegions", request).await.ok()?;
    let read = |scanned: proto::ScannedRegion| read_region(scanned.region?, scanned.leader?);
    Some(answer.regions.into_iter().map_while(read).collect())
}

/// Returns the address of a node; `Some(None)` if the node no longer exists.
async fn request_address(Leader { channel, cluster }: Leader, store: u64) -> Option<Option<String>> {
    let request = proto::GetStore { header: Some(proto::Header { cluster }), store };
    let answer: proto::StoreAnswer = call(channel, "/pdpb.PD/GetStore", request).await.ok()?;
    Some(answer.store.map(|store| store.address))
}

fn read_region(region: proto::Region, leader: proto::Peer) -> Option<Region> {
    let end = if region.end.is_empty() { None } else { Some(decode(&region.end)?) };
    Some(Region { id: region.id, epoch: region.epoch?, leader, start: decode(&region.start)?, end })
}

/// Returns the leader according to the placement driver `driver`.
async fn leader_by(security: Arc<SecurityManager>, driver: String) -> Option<Leader> {
    let any = connect(&security, &driver).await?;
    let members: proto::Members = call(any, "/pdpb.PD/GetMembers", proto::GetMembers {}).await.ok()?;
    let cluster = members.header?.cluster;
    let channel = connect(&security, members.leader?.urls.first()?).await?;
    Some(Leader { channel, cluster })
}

async fn connect(security: &SecurityManager, address: &str) -> Option<Channel> {
    security.connect(address, |channel| channel).await.ok()
}

/// Sends a request with a single answer.
pub(super) async fn call<Q, A>(
    channel: Channel,
    method: &'static str,
    request: Q,
) -> std::result::Result<A, tonic::Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel).max_decoding_message_size(super::cluster::MAX_MESSAGE);
    let not_ready = |error: tonic::transport::Error| tonic::Status::unavailable(error.to_string());
    client.ready().await.map_err(not_ready)?;
    let path = PathAndQuery::from_static(method);
    Ok(client.unary(Request::new(request), path, ProstCodec::default()).await?.into_inner())
}

/// Decodes the key of a region: groups of 8 bytes, each followed by a byte that says how many of them are padding.
fn decode(mut encoded: &[u8]) -> Option<Vec<u8>> {
    const GROUP: usize = 8;
    let mut key = Vec::with_capacity(encoded.len());
    if encoded.is_empty() {
        return Some(key);
    }
    loop {
        let (group, rest) = encoded.split_first_chunk::<GROUP>()?;
        let (mark, rest) = rest.split_first()?;
        let padding = usize::from(u8::MAX - mark);
        key.extend_from_slice(group.get(..GROUP.checked_sub(padding)?)?);
        if padding > 0 {
            return Some(key);
        }
        encoded = rest;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tikv::read::{FIRST_PAGE, part_of};

    #[test]
    fn the_keys_of_regions_are_decoded() {
        for length in 0..40_u8 {
            let key: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37)).collect();
            let encoded: Vec<u8> = Key::from(key.clone()).to_encoded().into();
            assert_eq!(decode(&encoded), Some(key));
            assert_eq!(decode(&encoded[..encoded.len() - 1]), None);
        }
        assert_eq!(decode(b""), Some(Vec::new()), "the first region begins before all keys");
        assert_eq!(decode(&[0, 0, 0, 0, 0, 0, 0, 0, 3]), None, "more padding than bytes");
    }

    pub(in crate::tikv) fn region(start: &[u8], end: Option<&[u8]>) -> Region {
        Region {
            id: 1,
            epoch: proto::Epoch::default(),
            leader: proto::Peer { store: 1, ..proto::Peer::default() },
            start: start.into(),
            end: end.map(Into::into),
        }
    }

    /// Regions of placement drivers at ports of this machine.
    pub(in crate::tikv) fn regions(ports: &[u16]) -> Regions {
        let drivers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        Regions::new(&Address::parse(&format!("tikv://{}/shop", drivers.join(","))).unwrap()).unwrap()
    }

    /// Returns a port of this machine where connections are accepted and no request is answered, as long as the listener lives.
    pub(in crate::tikv) fn silent() -> (std::net::TcpListener, u16) {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        (silent, port)
    }

    pub(in crate::tikv) fn channel(port: u16) -> Channel {
        Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap().connect_lazy()
    }

    /// Makes the process at a port the placement driver that answered last.
    pub(in crate::tikv) async fn leads(regions: &Regions, port: u16) {
        *regions.driver.lock().await = Driver::Answers(Leader { channel: channel(port), cluster: 1 });
    }

    impl Regions {
        pub(in crate::tikv) async fn driver_is_backing_off(&self) -> bool {
            matches!(*self.driver.lock().await, Driver::BackingOff { .. })
        }
    }

    pub(in crate::tikv) fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn a_region_has_its_first_key_and_not_its_end() {
        let middle = region(b"b", Some(b"d"));
        assert!(middle.contains(b"b") && middle.contains(b"c") && !middle.contains(b"d") && !middle.contains(b"a"));
        assert!(region(b"b", None).contains(b"z"));
    }

    #[test]
    fn the_first_part_of_a_range_ends_with_its_region() {
        let regions = regions(&[1]);
        // The last one was cached before the second one was split.
        for known in [region(b"", Some(b"d")), region(b"d", Some(b"h")), region(b"h", None), region(b"f", Some(b"h"))] {
            regions.cache(known);
        }
        let part = |start: &[u8], end: &[u8], direction| {
            let part = wait(regions.first_part((start.into(), end.into()), direction, 1));
            let FirstPart { range: (start, end), has_rest, regions } = part.expect("its region is known");
            assert_eq!(regions, 1);
            (String::from_utf8(start).unwrap() + ".." + &String::from_utf8(end).unwrap(), has_rest)
        };
        for (start, end, up, down) in [
            ("a", "c", ("a..c", false), ("a..c", false)),
            ("a", "d", ("a..d", false), ("a..d", false)),
            ("a", "e", ("a..d", true), ("d..e", true)),
            ("d", "h", ("d..h", false), ("f..h", true)),
            ("d", "f", ("d..f", false), ("d..f", false)),
            ("e", "i", ("e..h", true), ("h..i", true)),
            ("h", "z", ("h..z", false), ("h..z", false)),
            ("a", "z", ("a..d", true), ("h..z", true)),
        ] {
            let (start, end) = (start.as_bytes(), end.as_bytes());
            assert_eq!(part(start, end, Direction::Up), (up.0.to_string(), up.1));
            assert_eq!(part(start, end, Direction::Down), (down.0.to_string(), down.1));
        }
    }

    #[test]
    fn a_part_of_several_regions_ends_with_the_last_of_them() {
        let regions = regions(&[1]);
        let known = [
            region(b"", Some(b"b")),
            region(b"b", Some(b"d")),
            region(b"d", Some(b"f")),
            region(b"f", Some(b"h")),
            region(b"j", None),
        ];
        known.into_iter().for_each(|known| regions.cache(known));
        let part = |start: &[u8], end: &[u8], direction, count| {
            let found = wait(regions.first_part((start.into(), end.into()), direction, count))?;
            let (start, end) = found.range;
            Some((
                String::from_utf8(start).unwrap() + ".." + &String::from_utf8(end).unwrap(),
                found.has_rest,
                found.regions,
            ))
        };
        let expect = |part: &str, has_rest, regions| Some((part.to_owned(), has_rest, regions));
        for (count, up, down) in [(1, "a..b", "f..g"), (2, "a..d", "d..g"), (3, "a..f", "b..g")] {
            let of = u32::try_from(count).unwrap();
            assert_eq!(part(b"a", b"g", Direction::Up, count), expect(up, true, of));
            assert_eq!(part(b"a", b"g", Direction::Down, count), expect(down, true, of));
        }
        for count in [4, 16] {
            assert_eq!(part(b"a", b"g", Direction::Up, count), expect("a..g", false, 4));
            assert_eq!(part(b"a", b"g", Direction::Down, count), expect("a..g", false, 4));
        }
        // The region from h to j is not known.
        assert_eq!(part(b"c", b"z", Direction::Up, 16), expect("c..h", true, 3));
        assert_eq!(part(b"c", b"z", Direction::Down, 16), expect("j..z", true, 1));
        assert_eq!(part(b"h", b"z", Direction::Up, 16), None);
        // The regions of a part share a page: the client would drop what more they send.
        let page = |count, most| wait(part_of(&regions, (b"a".into(), b"z".into()), Direction::Up, count, most)).most;
        assert_eq!([page(1, 4096), page(2, 4096), page(3, 4096), page(4, 3)], [4096, 2048, 1366, 1]);
    }

    #[test]
    fn a_placement_driver_that_does_not_answer_gets_no_request_during_its_back_off() {
        let (silent, port) = silent();
        for was_leader in [false, true] {
            let regions = regions(&[port]);
            wait(async {
                if was_leader {
                    leads(&regions, port).await;
                }
                assert_eq!(regions.of(b"a").await, None);
                let Driver::BackingOff { until } = *regions.driver.lock().await else { panic!("it gets requests") };
                assert_eq!(regions.of(b"b").await, None);
                let same =
                    matches!(*regions.driver.lock().await, Driver::BackingOff { until: later } if later == until);
                assert!(same, "the second one was not tried");
            });
        }
        drop(silent);
    }

    #[test]
    fn without_a_placement_driver_outdated_regions_are_used_and_little_is_read_of_unknown_ones() {
        let (regions, most) = (regions(&[1]), 4096);
        let part = |start: &[u8], end: &[u8], direction| {
            let part = wait(part_of(&regions, (start.into(), end.into()), direction, 1, most));
            (part.range, part.has_rest, part.most)
        };
        let range = |start: &[u8], end: &[u8]| (start.to_vec(), end.to_vec());
        for direction in [Direction::Up, Direction::Down] {
            assert_eq!(part(b"a", b"z", direction), (range(b"a", b"z"), false, FIRST_PAGE));
        }
        let outdated = Instant::now().checked_sub(MAX_AGE).unwrap();
        lock(&regions.cached).insert(b"c".into(), (region(b"c", Some(b"p")), outdated));
        assert_eq!(part(b"d", b"z", Direction::Up), (range(b"d", b"p"), true, most));
        for end in [b"f", b"p"] {
            assert_eq!(part(b"a", end, Direction::Down), (range(b"c", end), true, most));
        }
        assert_eq!(part(b"p", b"z", Direction::Up), (range(b"p", b"z"), false, FIRST_PAGE));
    }
}
