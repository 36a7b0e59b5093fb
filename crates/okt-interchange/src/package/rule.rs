//! Which packages a repository takes from a registry.

/// The promptsets whose packages are taken.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    /// The registry hash of the built-in promptset.
    pub default: &'a str,
    /// Those that the repository lists; with none, every promptset is accepted.
    pub listed: &'a [String],
}

impl Accepted<'_> {
    /// Whether a package of this promptset is admitted. One without a hash is older than they are, and counts as built-in.
    pub fn admits(self, promptset_hash: &str) -> bool {
        let is = |hash: &str| hash.eq_ignore_ascii_case(promptset_hash);
        self.listed.is_empty()
            || promptset_hash.is_empty()
            || is(self.default)
            || self.listed.iter().any(|hash| is(hash))
    }
}

/// Whether a model is one of these; `*` stands for all.
pub fn is_allowed_model(model: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|one| one == "*" || one == model)
}
