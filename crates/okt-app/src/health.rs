//! Whether what we lean on answers.

use okt_store::Probed;

use crate::App;

/// One dependency by name.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: String,
    pub up: bool,
    /// Whether nothing works without it.
    pub required: bool,
}

impl App {
    /// Asks every dependency; an answer may be a moment old, so that a flood of probes asks no more often than one.
    pub async fn readiness(&self) -> Vec<Check> {
        let check = |probed: Probed| Check {
            name: format!("database:{}", probed.name),
            up: probed.up,
            required: probed.required,
        };
        self.databases().probe().await.into_iter().map(check).collect()
    }
}
