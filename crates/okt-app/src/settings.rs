//! What a repository does with its sources: providers, stages, registry, promptsets, budget.

use okt_auth::permissions::RepositoryManage;
use okt_auth::{RepoAccess, RepoScope};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_extract::Promptset;
use okt_interchange::origin::is_key_id;
use okt_model::{
    ContentHash, Context, Error, JobId, Money, PushLevel, RefineConcepts, RepositorySettings, Result, Stages,
    SummarizeConcepts, Trust, UnmappedContexts, Waiting,
};
use okt_queue::jobs;
use okt_store::outbox::{self, When};
use okt_store::{ai_calls, contexts, promptsets, repository_settings, summary_states};

use crate::registry::RegistryChoice;
use crate::{App, Origin};

const HASHES: usize = 1_000;
const MODELS: usize = 100;

/// The settings of a repository, with what the installation decides where they say nothing.
pub struct SeenSettings {
    pub settings: RepositorySettings,
    pub contexts: Vec<Context>,
    pub stages: Stages<bool>,
    pub budget: SeenBudget,
    /// The registries of the installation.
    pub registries: Vec<RegistryChoice>,
    /// With what the installation signs what it contributes.
    pub signing_key_id: Option<String>,
    /// What each person may spend on answers in a day; `None` is no limit.
    pub ask_per_day: Option<Money>,
}

/// What a repository may spend in a month, and has spent in this one.
#[derive(Clone, Copy, Debug)]
pub struct SeenBudget {
    /// What was chosen for it; `None` where nothing was.
    pub chosen: Option<Money>,
    /// What counts; `None` is no limit.
    pub effective: Option<Money>,
    /// The most that may be chosen.
    pub most: Option<Money>,
    pub spent: Money,
}

/// Which promptset a repository is to use.
#[derive(Clone, Debug, Default)]
pub enum UsedPromptset {
    #[default]
    AsItIs,
    BuiltIn,
    /// By its hash.
    Other(String),
}

/// A part of the settings that is to be changed.
pub enum SettingsChange {
    Provider {
        id: String,
        enabled: bool,
    },
    AutoContribute(bool),
    Registry {
        id: Option<String>,
        push_level: Option<String>,
        allowed_models: Option<Vec<String>>,
        trust: Option<Trust>,
        trusted_keys: Option<Vec<String>>,
    },
    /// What is taken from a registry, where that is to change, and what is used here.
    Promptsets {
        accepted: Option<Vec<String>>,
        used: UsedPromptset,
    },
    Budget(Option<f64>),
    Stages(Stages),
    /// What becomes of a concept whose context the repository does not have.
    UnmappedContexts(UnmappedContexts),
    /// Who may have a model answer, and what each person may spend on that in a day: `Some(None)` is what the installation gives.
    Ask {
        viewers: Option<bool>,
        per_person_per_day_usd: Option<Option<f64>>,
    },
}

impl SettingsChange {
    const fn name(&self) -> &'static str {
        match self {
            Self::Provider { .. } => "providers",
            Self::AutoContribute(_) => "auto_contribute",
            Self::Registry { .. } => "registry",
            Self::Promptsets { .. } => "promptsets",
            Self::Budget(_) => "budget",
            Self::Stages(_) => "stages",
            Self::UnmappedContexts(_) => "unmapped_contexts",
            Self::Ask { .. } => "ask",
        }
    }
}

impl App {
    pub async fn settings(&self, scope: &RepoScope<RepositoryManage>) -> Result<SeenSettings> {
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?;
        drop(conn);
        self.seen_settings(scope, settings.ok_or(Error::NotFound("repository"))?).await
    }

    pub async fn change_settings(
        &self,
        origin: &Origin,
        scope: &RepoScope<RepositoryManage>,
        change: SettingsChange,
    ) -> Result<SeenSettings> {
        let name = change.name();
        let mut tx = self.databases().begin_system().await?;
        let settings = repository_settings::lock(&mut tx, scope.repository()).await?;
        let mut settings = settings.ok_or(Error::NotFound("repository"))?;
        let wakes = matches!(change, SettingsChange::Budget(_));
        let turned_on = match &change {
            SettingsChange::Stages(stages) => *stages,
            _ => Stages::default(),
        };
        let before = settings.promptset_hash;
        self.apply(&mut settings, change)?;
        if let Some(hash) = settings.promptset_hash
            && settings.promptset_hash != before
            && promptsets::find(&mut tx, hash).await?.is_none()
        {
            return Err(Error::invalid("promptset_hash", "no promptset of this installation has this hash"));
        }
        repository_settings::update(&mut tx, scope.repository(), &settings).await?;
        self.record_change(&mut tx, origin, scope, "settings.changed", name).await?;
        tx.commit().await?;
        if wakes {
            jobs::wake(self.databases(), scope.repository(), Waiting::Budget).await?;
        }
        self.catch_up(scope, &settings, turned_on).await?;
        self.seen_settings(scope, settings).await
    }

    /// Has done what came in while stages were off that are turned on now.
    async fn catch_up(
        &self,
        scope: &RepoAccess,
        settings: &RepositorySettings,
        turned_on: Stages,
    ) -> Result<()> {
        let (repository, on) = (scope.repository(), Some(true));
        let providers = &self.config().providers;
        let summarizes = (turned_on.summarization == on || turned_on.synthesis == on)
            && providers.summarization.is_on(settings.stages.summarization);
        if turned_on.refinement != on && !summarizes {
            return Ok(());
        }
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if turned_on.refinement == on {
            let payload = RefineConcepts {};
            outbox::push(&mut tx, repository, JobId::mint(), &payload, When::default()).await?;
        }
        if summarizes {
            if turned_on.summarization == on {
                summary_states::resume_all(&mut tx, repository).await?;
            }
            if turned_on.synthesis == on {
                // Each concept asks for the definition of its name.
                summary_states::mark_all(&mut tx, repository).await?;
            }
            let payload = SummarizeConcepts {};
            outbox::push(&mut tx, repository, JobId::mint(), &payload, When::default()).await?;
        }
        Ok(tx.commit().await?)
    }

    fn apply(&self, settings: &mut RepositorySettings, change: SettingsChange) -> Result<()> {
        match change {
            SettingsChange::Provider { id, enabled } => switch(settings, &id, enabled)?,
            SettingsChange::AutoContribute(enabled) => settings.auto_contribute = enabled,
            SettingsChange::Registry { id, push_level, allowed_models, trust, trusted_keys } => {
                if let Some(id) = &id {
                    self.check_registry(id)?;
                }
                let level = push_level.map_or(Some(PushLevel::default()), |level| level.parse().ok());
                settings.push_level =
                    level.ok_or_else(|| Error::invalid("push_level", "must be facts or concepts"))?;
                settings.registry_id = id;
                settings.allowed_models = allowed_models.map(checked_models).transpose()?;
                // What is left out stays: nobody trusts everybody by leaving something out.
                settings.trust = trust.unwrap_or(settings.trust);
                if let Some(keys) = trusted_keys {
                    settings.trusted_keys = checked_keys(keys)?;
                }
                if settings.trust == Trust::Listed && settings.trusted_keys.is_empty() {
                    return Err(Error::invalid(
                        "trusted_keys",
                        "must name a key where trust is listed; otherwise nothing would be taken",
                    ));
                }
            }
            SettingsChange::Promptsets { accepted, used } => {
                if let Some(hashes) = accepted {
                    settings.accepted_promptset_hashes = checked_hashes(hashes)?;
                }
                match used {
                    UsedPromptset::AsItIs => {}
                    UsedPromptset::BuiltIn => settings.promptset_hash = None,
                    UsedPromptset::Other(hash) if hash == Promptset::builtin().hash().to_string() => {
                        settings.promptset_hash = None;
                    }
                    UsedPromptset::Other(hash) => settings.promptset_hash = Some(checked_hash(&hash)?),
                }
            }
            SettingsChange::Budget(monthly_usd) => {
                settings.monthly_usd = monthly_usd.map(|usd| self.checked_budget(usd)).transpose()?;
            }
            SettingsChange::UnmappedContexts(chosen) => settings.unmapped_contexts = chosen,
            SettingsChange::Ask { viewers, per_person_per_day_usd } => {
                let ours = &mut settings.ask;
                ours.viewers = viewers.unwrap_or(ours.viewers);
                if let Some(usd) = per_person_per_day_usd {
                    let money = |usd: f64| {
                        Money::from_usd(usd).ok_or_else(|| {
                            Error::invalid("per_person_per_day_usd", "must be from 0 to 1000000000, or null")
                        })
                    };
                    ours.per_person_per_day = usd.map(money).transpose()?;
                }
            }
            SettingsChange::Stages(stages) => {
                let ours = &mut settings.stages;
                ours.refinement = stages.refinement.or(ours.refinement);
                ours.summarization = stages.summarization.or(ours.summarization);
                ours.synthesis = stages.synthesis.or(ours.synthesis);
                ours.image_extraction = stages.image_extraction.or(ours.image_extraction);
            }
        }
        Ok(())
    }

    async fn seen_settings(&self, scope: &RepoAccess, settings: RepositorySettings) -> Result<SeenSettings> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let contexts = contexts::list(&mut tx, scope.repository()).await?;
        tx.commit().await?;
        let mut conn = self.databases().acquire_system().await?;
        let (spent, _) = ai_calls::of_repository(&mut conn, scope.repository()).await?;
        let limits = self.config().spending_limits();
        let budget = SeenBudget {
            chosen: settings.monthly_usd,
            effective: limits.of_repository(settings.monthly_usd),
            most: limits.most,
            spent,
        };
        let (providers, chosen) = (&self.config().providers, settings.stages);
        let stages = Stages {
            refinement: chosen.refinement.unwrap_or(providers.refinement.enabled),
            summarization: chosen.summarization.unwrap_or(providers.summarization.enabled),
            synthesis: chosen.synthesis.unwrap_or(providers.synthesis.enabled),
            image_extraction: chosen
                .image_extraction
                .unwrap_or(providers.decomposition.image_extraction.enabled),
        };
        let (registries, signing_key_id) = (self.registry_choices(), self.signing_key_id());
        let ask_per_day = self.daily_limit(settings.ask);
        Ok(SeenSettings { settings, contexts, stages, budget, registries, signing_key_id, ask_per_day })
    }

    /// The operator's limit binds everybody: who may change it changes the setting.
    fn checked_budget(&self, usd: f64) -> Result<Money> {
        let budget = Money::from_usd(usd);
        let budget =
            budget.ok_or_else(|| Error::invalid("monthly_usd", "must be from 0 to 1000000000, or null"))?;
        match self.config().spending_limits().most {
            Some(most) if budget > most => Err(Error::invalid(
                "monthly_usd",
                format!(
                    "must be at most {most}, which the operator of this installation has set (budget.max_usd)"
                ),
            )),
            _ => Ok(budget),
        }
    }

    fn check_registry(&self, id: &str) -> Result<()> {
        if self.registry_choices().iter().any(|choice| choice.id == id) {
            return Ok(());
        }
        Err(Error::invalid("id", "no registry of this installation has this id"))
    }
}

fn switch(settings: &mut RepositorySettings, id: &str, enabled: bool) -> Result<()> {
    let list = if SearchProvider::ALL.iter().any(|known| known.as_str() == id) {
        &mut settings.search
    } else if ResolutionProvider::ALL.iter().any(|known| known.as_str() == id) {
        &mut settings.resolution
    } else {
        let search = SearchProvider::ALL.iter().map(|known| known.as_str());
        let all = search.chain(ResolutionProvider::ALL.iter().map(|known| known.as_str()));
        let all: Vec<&str> = all.collect();
        return Err(Error::invalid("provider", format!("must be one of {}", all.join(", "))));
    };
    list.retain(|known| known != id);
    if enabled {
        list.push(id.to_owned());
    }
    Ok(())
}

fn checked_models(models: Vec<String>) -> Result<Vec<String>> {
    let sound = models.len() <= MODELS
        && models
            .iter()
            .all(|model| (1..=200).contains(&model.len()) && !model.chars().any(char::is_control));
    if sound {
        Ok(models)
    } else {
        Err(Error::invalid("allowed_models", "must be at most 100 names of models"))
    }
}

fn checked_keys(mut keys: Vec<String>) -> Result<Vec<String>> {
    if keys.len() > MODELS || !keys.iter().all(|key| is_key_id(key)) {
        return Err(Error::invalid("trusted_keys", "must be at most 100 ids of signing keys (okp_…)"));
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// In the form in which they are compared.
fn checked_hashes(hashes: Vec<String>) -> Result<Vec<String>> {
    let mut hashes: Vec<String> = hashes.into_iter().map(|hash| hash.to_ascii_lowercase()).collect();
    let is_hash = |hash: &String| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hashes.len() > HASHES || !hashes.iter().all(is_hash) {
        return Err(Error::invalid(
            "accepted_promptset_hashes",
            "must be at most 1000 hashes of 64 hexadecimal digits",
        ));
    }
    hashes.sort();
    hashes.dedup();
    Ok(hashes)
}

fn checked_hash(hash: &str) -> Result<ContentHash> {
    hash.parse()
        .map_err(|_| Error::invalid("promptset_hash", "must be 64 lower-case hexadecimal digits, or null"))
}
