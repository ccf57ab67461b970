//! Compiles the sources of `slate-store` with locks that a scheduler controls.

fn main() {
    println!("cargo::rustc-cfg=simulated");
    println!("cargo::rerun-if-changed=build.rs");
}
