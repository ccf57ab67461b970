//! The parts of the protocol's messages that Slate sends and reads by itself: kvproto's `pdpb.proto`, `metapb.proto`, `kvrpcpb.proto` and `errorpb.proto`. The
//! client does not expose them.

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Header {
    #[prost(uint64, tag = "1")]
    pub(super) cluster: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct GetMembers {}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Members {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(message, optional, tag = "3")]
    pub(super) leader: Option<Member>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Member {
    #[prost(string, repeated, tag = "4")]
    pub(super) urls: Vec<String>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct GetRegion {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) region_key: Vec<u8>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct RegionAnswer {
    #[prost(message, optional, tag = "2")]
    pub(super) region: Option<Region>,
    #[prost(message, optional, tag = "3")]
    pub(super) leader: Option<Peer>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct ScanRegions {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) start_key: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(super) limit: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct ScanRegionsAnswer {
    #[prost(message, repeated, tag = "4")]
    pub(super) regions: Vec<ScannedRegion>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct ScannedRegion {
    #[prost(message, optional, tag = "1")]
    pub(super) region: Option<Region>,
    #[prost(message, optional, tag = "2")]
    pub(super) leader: Option<Peer>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Region {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) start: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) end: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub(super) epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Eq, PartialEq, ::prost::Message)]
pub(super) struct Epoch {
    #[prost(uint64, tag = "1")]
    pub(super) conf_ver: u64,
    #[prost(uint64, tag = "2")]
    pub(super) version: u64,
}

#[derive(Clone, Copy, Eq, PartialEq, ::prost::Message)]
pub(super) struct Peer {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) store: u64,
    #[prost(int32, tag = "3")]
    pub(super) role: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct GetStore {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(uint64, tag = "2")]
    pub(super) store: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct StoreAnswer {
    #[prost(message, optional, tag = "2")]
    pub(super) store: Option<Store>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Store {
    #[prost(string, tag = "2")]
    pub(super) address: String,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct UpdateServiceSafepoint {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) service: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) seconds: i64,
    #[prost(uint64, tag = "4")]
    pub(super) safepoint: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct UpdateServiceSafepointAnswer {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<AnswerHeader>,
    #[prost(uint64, tag = "4")]
    pub(super) lowest: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct AnswerHeader {
    #[prost(message, optional, tag = "2")]
    pub(super) error: Option<HeaderError>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct HeaderError {
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Context {
    #[prost(uint64, tag = "1")]
    pub(super) region: u64,
    #[prost(message, optional, tag = "2")]
    pub(super) epoch: Option<Epoch>,
    #[prost(message, optional, tag = "3")]
    pub(super) peer: Option<Peer>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct BatchGet {
    #[prost(message, optional, tag = "1")]
    pub(super) context: Option<Context>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) keys: Vec<Vec<u8>>,
    #[prost(uint64, tag = "3")]
    pub(super) version: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct BatchGetAnswer {
    #[prost(message, optional, tag = "1")]
    pub(super) region_error: Option<RegionError>,
    #[prost(message, repeated, tag = "2")]
    pub(super) pairs: Vec<Pair>,
    #[prost(message, optional, tag = "5")]
    pub(super) error: Option<Present>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Pair {
    #[prost(message, optional, tag = "1")]
    pub(super) error: Option<Present>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct RegionError {
    #[prost(message, optional, tag = "6")]
    pub(super) server_is_busy: Option<Present>,
}

/// A message of which only the presence matters.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Present {}
