//! Compression of messages, by the compressors of MongoDB's protocol.

use std::io::{Read, Write};

use ruzstd::{
    decoding::{BlockDecodingStrategy, FrameDecoder},
    encoding::{CompressionLevel, compress},
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

    /// Returns whether a client may use the compressor of this name.
    pub(crate) fn is_known(name: &str) -> bool {
        matches!(name, "snappy" | "zlib" | "zstd")
    }

    /// Appends the decompressed bytes, and fails unless they are `length` bytes. Decompresses at most a block of 128 KiB beyond that.
    pub(super) fn decompress(self, bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
        let before = out.len();
        match self {
            Self::None => out.extend_from_slice(bytes),
            Self::Snappy => {
                let actual = snap::raw::decompress_len(bytes).map_err(|_| WireError::Compressed)?;
                if actual != length {
                    return Err(WireError::Compressed);
                }
                out.resize(before + length, 0);
                let place = out.get_mut(before..).unwrap_or_default();
                snap::raw::Decoder::new().decompress(bytes, place).map_err(|_| WireError::Compressed)?;
            }
            Self::Zlib => read(flate2::read::ZlibDecoder::new(bytes), length, out)?,
            Self::Zstd => decompress_zstd(&mut &*bytes, length, out)?,
        }
        if out.len() - before == length { Ok(()) } else { Err(WireError::Compressed) }
    }

    /// Appends both parts, compressed as one stream. Copies at most a block of them at a time.
    pub(super) fn compress(self, parts: [&[u8]; 2], out: &mut Vec<u8>) -> Result<(), WireError> {
        let [first, second] = parts;
        match self {
            Self::None => parts.iter().for_each(|part| out.extend_from_slice(part)),
            Self::Snappy => compress_snappy(first.len() + second.len(), first.chain(second), out)?,
            Self::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
                parts.iter().try_for_each(|part| encoder.write_all(part))?;
                encoder.finish()?;
            }
            Self::Zstd => compress(first.chain(second), out, CompressionLevel::Fastest),
        }
        Ok(())
    }
}

/// Length in bytes of the blocks that Snappy compresses independently.
const SNAPPY_BLOCK: u64 = 1 << 16;

/// Appends `length` bytes compressed by Snappy: the total length, then the blocks, each compressed by itself and without its own length.
fn compress_snappy(length: usize, bytes: impl Read, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut rest = length;
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            break;
        }
        out.push(low | 0x80);
    }
    let mut encoder = snap::raw::Encoder::new();
    let (mut block, mut bytes) = (Vec::new(), bytes.take(SNAPPY_BLOCK));
    while bytes.read_to_end(&mut block)? > 0 {
        let compressed = encoder.compress_vec(&block).map_err(|_| WireError::Compressed)?;
        // A length ends with its first byte below 0x80.
        let head = compressed.iter().position(|byte| *byte < 0x80).map_or(0, |last| last + 1);
        out.extend_from_slice(compressed.get(head..).unwrap_or_default());
        block.clear();
        bytes.set_limit(SNAPPY_BLOCK);
    }
    Ok(())
}

/// Decompresses and appends up to `length` bytes, and one more, which shows that there are too many.
fn read(decoder: impl Read, length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let most = u64::try_from(length).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(most).read_to_end(out).map(drop).map_err(|_| WireError::Compressed)
}

/// Appends the content of one Zstandard frame. Decompresses block by block: a stream would return no byte before it holds a whole window, which may
/// be longer than any message, whatever the length of the content.
fn decompress_zstd(bytes: &mut &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let damaged = |_| WireError::Compressed;
    let mut decoder = FrameDecoder::new();
    decoder.init(&mut *bytes).map_err(damaged)?;
    let most = BlockDecodingStrategy::UptoBytes(length.saturating_add(1));
    let is_whole = decoder.decode_blocks(&mut *bytes, most).map_err(damaged)?;
    if !is_whole || decoder.can_collect() != length {
        return Err(WireError::Compressed);
    }
    decoder.collect_to_writer(out).map(drop).map_err(|_| WireError::Compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_not_decompressed_beyond_its_message() {
        // A window of 64 MiB, and blocks of 128 KiB of the same byte.
        const BLOCKS: usize = 1000;
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3];
        for place in 1..=BLOCKS {
            let header = (128_u32 << 10) << 3 | 1 << 1 | u32::from(place == BLOCKS);
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(b'x');
        }
        let (mut rest, mut out) = (&*frame, Vec::new());
        assert!(decompress_zstd(&mut rest, 300 << 10, &mut out).is_err());
        assert_eq!((rest.len(), out.len()), (4 * (BLOCKS - 3), 0));
        let length = BLOCKS * (128 << 10);
        assert!(Compressor::Zstd.decompress(&frame, length - 1, &mut out).is_err());
        Compressor::Zstd.decompress(&frame, length, &mut out).unwrap();
        assert_eq!(out.len(), length);
    }

    #[test]
    fn bytes_in_two_parts_are_compressed_as_one() {
        // Several blocks, with repetitions within each and across their ends.
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(|number| (number / 7 % 1013).to_le_bytes()).collect();
        for length in [0, 1, 127, 128, 65_535, 65_536, 65_537, bytes.len()] {
            let (first, second) = bytes[..length].split_at(length.min(5));
            for compressor in Compressor::ALL {
                let (mut compressed, mut plain) = (Vec::new(), Vec::new());
                compressor.compress([first, second], &mut compressed).unwrap();
                compressor.decompress(&compressed, length, &mut plain).unwrap();
                assert!(plain == bytes[..length], "{compressor:?}: {length} bytes");
            }
            let mut compressed = Vec::new();
            Compressor::Snappy.compress([first, second], &mut compressed).unwrap();
            assert!(compressed == snap::raw::Encoder::new().compress_vec(&bytes[..length]).unwrap(), "{length} bytes");
        }
    }
}
