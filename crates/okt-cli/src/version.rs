//! Which build this is.

use std::sync::LazyLock;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whoever builds a release sets `OKT_COMMIT`. Asking git would build everything anew at every commit, and not work in a
/// tree without one.
pub(crate) const COMMIT: &str = match option_env!("OKT_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// For `okt --version`.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| format!("{VERSION} (commit {COMMIT})"));
