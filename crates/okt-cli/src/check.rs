//! `okt config check`: would the service start, and does what it leans on answer?

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use okt_config::{Config, Loaded, StorageBackend};
use okt_jobs::ParserState;
use okt_providers::GuardedClient;
use okt_providers::ai::{AiError, Models};
use okt_store::Databases;
use serde::Serialize;

/// For the answer of a model's server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The oldest PostgreSQL that is tested.
const OLDEST_POSTGRES: u32 = 15;
/// More than an answer takes to come.
const CLOCKS_APART: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Default)]
pub(crate) struct Findings(Vec<Finding>);

#[derive(Serialize)]
pub(crate) struct Finding {
    level: Level,
    /// What was found, and why it matters.
    what: String,
    /// The command that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Note,
    Warning,
    Error,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Findings {
    pub(crate) fn is_sound(&self) -> bool {
        self.failed() == 0
    }

    pub(crate) fn failed(&self) -> usize {
        self.count(Level::Error)
    }

    pub(crate) fn warned(&self) -> usize {
        self.count(Level::Warning)
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    pub(crate) fn all(&self) -> &[Finding] {
        &self.0
    }

    fn push(&mut self, level: Level, what: impl fmt::Display, mend: Option<String>) {
        self.0.push(Finding { level, what: what.to_string(), mend });
    }

    pub(crate) fn good(&mut self, what: impl fmt::Display) {
        self.push(Level::Ok, what, None);
    }

    pub(crate) fn note(&mut self, what: impl fmt::Display) {
        self.push(Level::Note, what, None);
    }

    pub(crate) fn warn(&mut self, what: impl fmt::Display) {
        self.push(Level::Warning, what, None);
    }

    pub(crate) fn warn_and(&mut self, what: impl fmt::Display, mend: impl Into<String>) {
        self.push(Level::Warning, what, Some(mend.into()));
    }

    pub(crate) fn fail(&mut self, what: impl fmt::Display) {
        self.push(Level::Error, what, None);
    }

    pub(crate) fn fail_and(&mut self, what: impl fmt::Display, mend: impl Into<String>) {
        self.push(Level::Error, what, Some(mend.into()));
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.level.word(), self.what)?;
        self.mend.as_ref().map_or(Ok(()), |mend| write!(f, "\n  mend it: {mend}"))
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.0 {
            writeln!(f, "{finding}")?;
        }
        match (self.failed(), self.warned()) {
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
            databases(loaded, &mut found).await?;
            models(config, &mut found).await;
        }
        anyhow::Ok(())
    })?;
    Ok(found)
}

/// Whether files can be kept. The folder itself is made when the service starts.
pub(crate) fn storage(config: &Config, found: &mut Findings) {
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

pub(crate) async fn parser(config: &Config, found: &mut Findings) -> anyhow::Result<()> {
    match crate::serve::parser(config)?.check().await {
        ParserState::Ok => {}
        ParserState::NoPdf(why) if config.providers.parsing.pdfium.is_some() => {
            found.fail(format!("providers.parsing.pdfium: {why}"));
        }
        ParserState::NoPdf(why) => found.warn_and(
            why,
            "okt up --yes   # or, in a checkout: export SVC__PROVIDERS__PARSING__PDFIUM=$(scripts/pdfium)",
        ),
        ParserState::Broken(why) => found.fail(why),
    }
    Ok(())
}

pub(crate) async fn databases(loaded: &Loaded, found: &mut Findings) -> anyhow::Result<()> {
    let config = &loaded.config;
    for (name, inspected) in Databases::inspect(config).await? {
        let inspected = match inspected {
            Ok(inspected) => inspected,
            Err(error) => {
                // What to do elsewhere is in the error itself.
                match crate::up::remedy(loaded) {
                    Some(remedy) => found.fail_and(error, remedy),
                    None => found.fail(error),
                }
                continue;
            }
        };
        let version = &inspected.version;
        let major = version.split(['.', ' ']).next().and_then(|major| major.parse::<u32>().ok());
        if let Some(major) = major.filter(|major| *major < OLDEST_POSTGRES) {
            found.fail_and(
                format!("databases.{name}: PostgreSQL {version} is older than {OLDEST_POSTGRES}"),
                format!("pg_upgradecluster {major} main   # on its machine, if that is Debian"),
            );
        }
        let vectors = match &inspected.pgvector {
            Some(version) => format!(", pgvector {version}"),
            None => String::new(),
        };
        let pending = match inspected.pending {
            0 => "up to date".to_owned(),
            pending => format!("{pending} migrations to be applied at the next start, or by `okt migrate`"),
        };
        let apart = apart(inspected.now);
        if apart > CLOCKS_APART {
            found.warn_and(
                format!(
                    "databases.{name}: its clock is {} s apart from that of this machine, so sessions and keys end too early \
                     or too late",
                    apart.as_secs()
                ),
                "timedatectl set-ntp true   # on both machines",
            );
        }
        found.good(format!("databases.{name}: PostgreSQL {version}{vectors}, {pending}"));
        if inspected.wants_pgvector && inspected.pgvector.is_none() && vectors_are_there(config) {
            let package = major
                .map_or_else(String::new, |major| format!("apt-get install postgresql-{major}-pgvector && "));
            found.warn_and(
                format!(
                    "databases.{name}: has no pgvector of 0.8 or later that this login may switch on, so facts get no vectors"
                ),
                format!("{package}psql -c 'CREATE EXTENSION vector' DATABASE   # on its machine, as a superuser"),
            );
        }
    }
    Ok(())
}

/// How far two clocks are from each other.
#[expect(clippy::disallowed_methods, reason = "this machine's clock is what is looked at")]
fn apart(epoch_seconds: f64) -> Duration {
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Duration::try_from_secs_f64((ours - epoch_seconds).abs()).unwrap_or(Duration::MAX)
}

/// Whether pgvector is where vectors are kept.
const fn vectors_are_there(config: &Config) -> bool {
    config.providers.vector_store.host.is_empty() && !config.providers.embedding.model.is_empty()
}

pub(crate) async fn models(config: &Config, found: &mut Findings) {
    let mut used = config.models_in_use().peekable();
    if used.peek().is_none() {
        return;
    }
    let models = match GuardedClient::of(&config.providers) {
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
