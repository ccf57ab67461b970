use std::{collections::BTreeMap, io};

use ::redb::StorageBackend;

/// The unit in which writes are buffered: the size of redb's pages.
const BLOCK: usize = 4096;
const BLOCK_BYTES: u64 = BLOCK as u64;

/// Maximum size in bytes of one write to the device.
const LONGEST_WRITE: usize = 1 << 20;

/// The writes between two syncs. The device may execute them in any order.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    /// Written blocks, by their offset in bytes.
    blocks: BTreeMap<u64, Box<[u8]>>,
    /// The length that was set last; `None` if none was set.
    length: Option<u64>,
    /// The number of writes and changes of the length.
    changes: u64,
}

/// Returns the start of the first and the end of the last block that contain these bytes.
pub(super) fn blocks_around(offset: u64, bytes: usize) -> (u64, u64) {
    let end = offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    (offset / BLOCK_BYTES * BLOCK_BYTES, end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES)
}

impl Epoch {
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.blocks.len()).unwrap_or(u64::MAX).saturating_mul(BLOCK_BYTES)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Stores whole blocks; `start` must be the offset of a block.
    pub(super) fn write(&mut self, start: u64, whole: &[u8]) {
        self.changes += 1;
        for (block, at) in whole.chunks(BLOCK).zip((start..).step_by(BLOCK)) {
            self.blocks.insert(at, block.into());
        }
    }

    pub(super) fn set_len(&mut self, length: u64) {
        self.changes += 1;
        self.length = Some(length);
        self.blocks.split_off(&length);
    }

    /// Copies the blocks of this epoch over `out`, which was read at `offset`.
    pub(super) fn overlay(&self, offset: u64, out: &mut [u8]) {
        let (start, end) = blocks_around(offset, out.len());
        for (at, block) in self.blocks.range(start..end) {
            let skipped = usize::try_from(offset.saturating_sub(*at)).unwrap_or(BLOCK);
            let to = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            let (Some(from), Some(to)) = (block.get(skipped..), out.get_mut(to..)) else { continue };
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }

    /// Writes everything to the device, adjacent blocks in one call. Can be repeated.
    pub(super) fn write_to(&self, device: &dyn StorageBackend) -> io::Result<()> {
        if let Some(length) = self.length
            && device.len()? != length
        {
            device.set_len(length)?;
        }
        let mut run: Option<(u64, Vec<u8>)> = None;
        for (at, block) in &self.blocks {
            match &mut run {
                Some((start, bytes))
                    if bytes.len() < LONGEST_WRITE
                        && start.checked_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) == Some(*at) =>
                {
                    bytes.extend_from_slice(block);
                }
                _ => {
                    if let Some((start, bytes)) = run.replace((*at, block.to_vec())) {
                        device.write(start, &bytes)?;
                    }
                }
            }
        }
        run.map_or(Ok(()), |(start, bytes)| device.write(start, &bytes))
    }
}
