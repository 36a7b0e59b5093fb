//! Promptsets: the instructions that models get. The built-in one is a part of the program; others are written by people, and
//! never change.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use okt_auth::SystemScope;
use okt_auth::permissions::{PromptsetRead, PromptsetWrite};
use okt_extract::{Phase, Promptset};
use okt_model::{ContentHash, Error, Result, StoredPromptset, checked_name};
use okt_store::promptsets;

use crate::audit::{Actor, record};
use crate::{App, Origin};

/// As long as anybody needs to say what is wanted; it is sent with every question.
const LONGEST: usize = 20_000;

/// A promptset as it is shown.
pub struct SeenPromptset {
    pub hash: ContentHash,
    pub registry_hash: ContentHash,
    pub name: String,
    pub built_in: bool,
    pub promptset: Promptset,
    /// `None` for the built-in one.
    pub created_at: Option<DateTime<Utc>>,
}

impl App {
    /// The built-in one first, then the others by their hashes.
    pub async fn list_promptsets(
        &self,
        _: &SystemScope<PromptsetRead>,
        after: Option<ContentHash>,
        limit: i64,
    ) -> Result<Vec<SeenPromptset>> {
        let mut conn = self.databases().acquire_system().await?;
        let stored = promptsets::list(&mut conn, after, limit).await?;
        let first = if after.is_none() { Some(built_in()) } else { None };
        first.into_iter().map(Ok).chain(stored.into_iter().map(SeenPromptset::try_from)).collect()
    }

    pub async fn find_promptset(
        &self,
        _: &SystemScope<PromptsetRead>,
        hash: ContentHash,
    ) -> Result<SeenPromptset> {
        self.load_promptset(hash).await
    }

    async fn load_promptset(&self, hash: ContentHash) -> Result<SeenPromptset> {
        let ours = built_in();
        if ours.hash == hash {
            return Ok(ours);
        }
        let mut conn = self.databases().acquire_system().await?;
        let stored = promptsets::find(&mut conn, hash).await?;
        stored.ok_or(Error::NotFound("promptset"))?.try_into()
    }

    /// Keeps a promptset with these phases, the others as in the built-in one. Whether it is new: the same texts are the same
    /// promptset.
    pub async fn add_promptset(
        &self,
        origin: &Origin,
        scope: &SystemScope<PromptsetWrite>,
        name: &str,
        phases: &BTreeMap<String, String>,
    ) -> Result<(SeenPromptset, bool)> {
        let name = checked_name("name", name, 1, 200)?;
        let promptset = Promptset::builtin().with(checked(phases)?);
        let hash = promptset.hash();
        if hash == built_in().hash {
            return Err(Error::invalid("phases", "are those of the built-in promptset; change at least one"));
        }
        let registry_hash = promptset.registry_hash();
        let texts: BTreeMap<&str, &str> =
            Phase::ALL.into_iter().map(|phase| (phase.as_str(), promptset.text(phase))).collect();
        let texts = serde_json::to_string(&texts).map_err(Error::internal)?;
        let mut tx = self.databases().begin_system().await?;
        let caller = scope.caller();
        let new = promptsets::insert(&mut tx, hash, registry_hash, &name, &texts, caller.user()).await?;
        if new {
            record(&mut tx, origin, Actor::caller(caller), "promptset.added", &hash.to_string()).await?;
        }
        tx.commit().await?;
        Ok((self.load_promptset(hash).await?, new))
    }
}

fn built_in() -> SeenPromptset {
    let promptset = Promptset::builtin();
    SeenPromptset {
        hash: promptset.hash(),
        registry_hash: promptset.registry_hash(),
        name: "built-in".to_owned(),
        built_in: true,
        promptset,
        created_at: None,
    }
}

fn checked(phases: &BTreeMap<String, String>) -> Result<BTreeMap<Phase, String>> {
    let known = |name: &str| Phase::ALL.into_iter().find(|phase| phase.as_str() == name);
    let mut found = BTreeMap::new();
    for (name, text) in phases {
        let Some(phase) = known(name) else {
            let all: Vec<&str> = Phase::ALL.into_iter().map(Phase::as_str).collect();
            return Err(Error::invalid("phases", format!("has a phase that is none of {}", all.join(", "))));
        };
        if text.trim().is_empty() || text.chars().count() > LONGEST || text.contains('\0') {
            return Err(Error::invalid(
                format!("phases.{}", phase.as_str()),
                format!("must be 1 to {LONGEST} characters"),
            ));
        }
        found.insert(phase, text.clone());
    }
    if found.is_empty() {
        return Err(Error::invalid("phases", "must have at least one phase"));
    }
    Ok(found)
}

impl TryFrom<StoredPromptset> for SeenPromptset {
    type Error = Error;

    fn try_from(stored: StoredPromptset) -> Result<Self> {
        Ok(Self {
            promptset: Promptset::of(Some(&stored)).map_err(Error::internal)?,
            hash: stored.hash,
            registry_hash: stored.registry_hash,
            name: stored.name,
            built_in: false,
            created_at: Some(stored.created_at),
        })
    }
}
