//! `okt config check`: would the service start, and does what it leans on answer?

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use okt_config::{Config, Loaded, StorageBackend};
use okt_jobs::ParserState;
use okt_providers::GuardedClient;
use okt_providers::ai::{AiError, Models};
use okt_store::Databases;

/// For the answer of a model's server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The oldest PostgreSQL that is tested.
const OLDEST_POSTGRES: u32 = 15;

/// What was found, a line each.
#[derive(Default)]
pub(crate) struct Findings {
    said: Vec<String>,
    warned: usize,
    failed: usize,
}

impl Findings {
    pub(crate) const fn is_sound(&self) -> bool {
        self.failed == 0
    }

    fn good(&mut self, what: impl fmt::Display) {
        self.said.push(format!("ok: {what}"));
    }

    fn note(&mut self, what: impl fmt::Display) {
        self.said.push(format!("note: {what}"));
    }

    fn warn(&mut self, what: impl fmt::Display) {
        self.said.push(format!("warning: {what}"));
        self.warned += 1;
    }

    fn fail(&mut self, what: impl fmt::Display) {
        self.said.push(format!("error: {what}"));
        self.failed += 1;
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.said {
            writeln!(f, "{line}")?;
        }
        match (self.failed, self.warned) {
            (0, 0) => writeln!(f, "The configuration is valid."),
            (0, warned) => writeln!(f, "The configuration is valid, with {warned} warnings."),
            (failed, _) => writeln!(f, "The configuration is not usable: {failed} errors."),
        }
    }
}

/// A configuration that could be loaded has passed every rule already; here is what the rules can't see.
pub(crate) fn run(loaded: &Loaded, online: bool) -> anyhow::Result<Findings> {
    let mut found = Findings::default();
    for note in &loaded.notes {
        found.note(note);
    }
    for warning in &loaded.warnings {
        found.warn(warning);
    }
    let config = &loaded.config;
    storage(config, &mut found);
    let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
    runtime.block_on(async {
        parser(config, &mut found).await?;
        if online {
            databases(config, &mut found).await?;
            models(config, &mut found).await;
        }
        anyhow::Ok(())
    })?;
    Ok(found)
}

/// Whether files can be kept. The folder itself is made when the service starts.
fn storage(config: &Config, found: &mut Findings) {
    let storage = &config.providers.storage;
    if storage.backend != StorageBackend::Filesystem {
        return;
    }
    let existing = storage.root.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let probe = existing.join(format!(".okt-check.{}", std::process::id()));
    let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    if let Err(error) = written {
        found.fail(format!(
            "providers.storage.root: {} can't be written ({error}); give the folder to the user that runs okt, or set \
             SVC__PROVIDERS__STORAGE__ROOT to another one",
            existing.display()
        ));
    }
}

async fn parser(config: &Config, found: &mut Findings) -> anyhow::Result<()> {
    match crate::serve::parser(config)?.check().await {
        ParserState::Ok => {}
        ParserState::NoPdf(why) if config.providers.parsing.pdfium.is_some() => {
            found.fail(format!("providers.parsing.pdfium: {why}"));
        }
        ParserState::NoPdf(why) => found.warn(why),
        ParserState::Broken(why) => found.fail(why),
    }
    Ok(())
}

async fn databases(config: &Config, found: &mut Findings) -> anyhow::Result<()> {
    for (name, inspected) in Databases::inspect(config).await? {
        let inspected = match inspected {
            Ok(inspected) => inspected,
            Err(error) => {
                found.fail(error);
                continue;
            }
        };
        let version = &inspected.version;
        let major = version.split(['.', ' ']).next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major < OLDEST_POSTGRES) {
            found.fail(format!("databases.{name}: PostgreSQL {version} is older than {OLDEST_POSTGRES}"));
        }
        let vectors = match &inspected.pgvector {
            Some(version) => format!(", pgvector {version}"),
            None => String::new(),
        };
        let pending = match inspected.pending {
            0 => "up to date".to_owned(),
            pending => format!("{pending} migrations to be applied at the next start, or by `okt migrate`"),
        };
        found.good(format!("databases.{name}: PostgreSQL {version}{vectors}, {pending}"));
        if inspected.wants_pgvector && inspected.pgvector.is_none() && vectors_are_there(config) {
            found.warn(format!(
                "databases.{name}: has no pgvector of 0.8 or later that this login may switch on, so facts get no vectors"
            ));
        }
    }
    Ok(())
}

/// Whether pgvector is where vectors are kept.
const fn vectors_are_there(config: &Config) -> bool {
    config.providers.vector_store.host.is_empty() && !config.providers.embedding.model.is_empty()
}

async fn models(config: &Config, found: &mut Findings) {
    let mut used = config.models_in_use().peekable();
    if used.peek().is_none() {
        return;
    }
    let models = match GuardedClient::new(&config.providers.resolution.fetch.allow_private) {
        Ok(client) => Models::new(config, &client),
        Err(error) => return found.fail(format!("no model can be called: {error}")),
    };
    for (key, model) in used {
        let Some(asked) = models.find(&model.id) else { continue };
        let id = &model.id;
        match asked.is_listed(PATIENCE).await {
            Ok(Some(true)) => found.good(format!("{id} ({key}) is served")),
            Ok(Some(false)) => {
                found.warn(format!("{id} ({key}) is not among the models that its server lists"));
            }
            Ok(None) => found.good(format!("{id} ({key}): its server answers, but lists no models")),
            Err(AiError::Unavailable { service, cause }) => {
                found.fail(format!("{id} ({key}): {service} did not answer: {cause}"));
            }
            Err(error) => found.fail(format!("{id} ({key}): {error}")),
        }
    }
}
