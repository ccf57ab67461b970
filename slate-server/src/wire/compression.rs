//! Compression of messages, by the compressors of MongoDB's protocol.

use std::io::{Read, Write};

use ruzstd::{
    decoding::StreamingDecoder,
    encoding::{CompressionLevel, compress_to_vec},
};

use super::WireError;

/// A way to compress messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    /// The bytes as they are.
    None,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Snappy, Self::Zlib, Self::Zstd];

    pub(super) fn from_id(id: u8) -> Option<Self> {
        Some(match id {
            0 => Self::None,
            1 => Self::Snappy,
            2 => Self::Zlib,
            3 => Self::Zstd,
            _ => return None,
        })
    }

    pub(super) fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Snappy => 1,
            Self::Zlib => 2,
            Self::Zstd => 3,
        }
    }

    /// Returns whether a client that offers a compressor by this name may use it.
    pub(crate) fn is_known(name: &str) -> bool {
        matches!(name, "snappy" | "zlib" | "zstd")
    }

    /// Appends what was compressed, which must be `length` bytes. Never holds more than that.
    pub(super) fn decompress(self, bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
        let before = out.len();
        match self {
            Self::None => out.extend_from_slice(bytes),
            Self::Snappy => {
                let actual = snap::raw::decompress_len(bytes).map_err(|_| WireError::Compressed)?;
                if actual != length {
                    return Err(WireError::Compressed);
                }
                let plain = snap::raw::Decoder::new().decompress_vec(bytes).map_err(|_| WireError::Compressed)?;
                out.extend_from_slice(&plain);
            }
            Self::Zlib => read(flate2::read::ZlibDecoder::new(bytes), length, out)?,
            Self::Zstd => read(StreamingDecoder::new(bytes).map_err(|_| WireError::Compressed)?, length, out)?,
        }
        if out.len() - before == length { Ok(()) } else { Err(WireError::Compressed) }
    }

    /// Appends the compressed bytes.
    pub(super) fn compress(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        match self {
            Self::None => out.extend_from_slice(bytes),
            Self::Snappy => {
                let compressed = snap::raw::Encoder::new().compress_vec(bytes).map_err(|_| WireError::Compressed)?;
                out.extend_from_slice(&compressed);
            }
            Self::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
                encoder.write_all(bytes)?;
                encoder.finish()?;
            }
            Self::Zstd => out.extend(compress_to_vec(bytes, CompressionLevel::Fastest)),
        }
        Ok(())
    }
}

/// Appends at most one byte more than `length`.
fn read(decoder: impl Read, length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let most = u64::try_from(length).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(most).read_to_end(out).map(drop).map_err(|_| WireError::Compressed)
}
