use slate_store::{Keyspace, PointReader, Result};

/// Looks up one key with a reader that is reused.
pub(crate) fn lookup<'r>(reader: &'r mut impl PointReader, keyspace: Keyspace, key: &[u8]) -> Result<Option<&'r [u8]>> {
    reader.load(&[(keyspace, key)])?;
    Ok(reader.loaded(0))
}
