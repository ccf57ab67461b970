use ::redb::TableDefinition;

use crate::Keyspace;

pub(super) type Bytes = &'static [u8];

/// Returns the name of a keyspace's table, which is part of the file format.
pub(super) fn name(keyspace: Keyspace) -> String {
    format!("k{:08x}", keyspace.0)
}

pub(super) fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}
