//! Builds the crate again when the web UI was built again, where its files become a part of the binary. Debug builds read the
//! folder when they start.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("PROFILE").is_some_and(|profile| profile != "debug") {
        println!("cargo:rerun-if-changed=../../web/dist");
    }
}
