//! Whether what we lean on answers.

use crate::App;

/// One dependency by name.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: String,
    pub up: bool,
}

impl App {
    /// Asks every dependency; an answer may be a moment old, so that a flood of probes asks no more often than one.
    pub async fn readiness(&self) -> Vec<Check> {
        let answers = self.databases().probe().await;
        answers.into_iter().map(|(name, up)| Check { name: format!("database:{name}"), up }).collect()
    }
}
