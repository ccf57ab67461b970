//! What the stores of tests pass on to the store within them.

/// The methods of `Store` that a store passes on to the one in this field.
macro_rules! passed_on {
    ($field:tt) => {
        fn flush(&self) -> slate_store::Result<()> {
            self.$field.flush()
        }

        fn backup(&self, to: &std::path::Path) -> slate_store::Result<()> {
            self.$field.backup(to)
        }

        fn size(&self, detail: slate_store::SizeDetail) -> slate_store::Result<slate_store::Size> {
            self.$field.size(detail)
        }
    };
}

pub(crate) use passed_on;
