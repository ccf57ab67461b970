//! Compiles the sources of `slate-store` with locks that a scheduler controls.

fn main() {
    println!("cargo::rustc-cfg=simulated");
    // The features that the sources name. None can be on: the backends on disk are libraries with locks of their own.
    println!(
        r#"cargo::rustc-check-cfg=cfg(feature, values("cached", "failpoints", "redb", "rocksdb", "serde", "tikv", "tracing"))"#
    );
    println!("cargo::rerun-if-changed=build.rs");
}
