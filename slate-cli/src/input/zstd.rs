use std::io::{self, BufRead, Read};

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// Largest window that is accepted: what `zstd --ultra` uses. It bounds the memory.
const MAX_WINDOW: u64 = 128 << 20;

/// Decompresses any number of Zstandard frames and checks their checksums.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    state: FrameState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Between,
    Within,
    Ended,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { source, decoder, state: FrameState::Between }
    }

    /// Begins the next frame; skips those without data.
    fn begin(&mut self) -> io::Result<FrameState> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(FrameState::Ended);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(FrameState::Within),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    /// Returns `error` for the user; at the end of the file `UnexpectedEof`, which the decoder does not recognize.
    fn failure(&mut self, error: FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends within compressed data"),
            Ok(_) => damaged(error),
            Err(error) => error,
        }
    }

    fn end(&self) -> io::Result<FrameState> {
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(computed)) if stored != computed => Err(damaged("a checksum is wrong")),
            _ => Ok(FrameState::Between),
        }
    }
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state {
                FrameState::Ended => return Ok(0),
                FrameState::Between => self.state = self.begin()?,
                FrameState::Within => {
                    while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                        let blocks = BlockDecodingStrategy::UptoBlocks(1);
                        let decoded = self.decoder.decode_blocks(&mut self.source, blocks);
                        decoded.map_err(|error| self.failure(error))?;
                    }
                    let read = self.decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                    self.state = self.end()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn frames_follow_each_other() {
        let frame = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let (long, mut text) = ("0123456789".repeat(50_000), String::new());
        let file = [frame(&long), skipped, frame("end")].concat();
        Frames::new(file.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, long + "end");
        let cut = Frames::new(file.get(..file.len() - 1).unwrap()).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(cut.to_string(), "the file ends within compressed data");
    }
}
