//! Files that are generated and committed: compared, or with `OKT_BLESS=1` written anew.

use std::path::Path;

/// `path` is relative to the root of the workspace.
pub fn check(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("OKT_BLESS").is_some() {
        std::fs::write(&file, text).expect("a writable checkout");
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == text, "{path} is not what the code says any more; run `just bless` and commit it");
}
