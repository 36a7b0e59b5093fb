//! The settings of a repository.

use std::collections::BTreeMap;

use okt_app::{SeenBudget, SeenSettings, UsedPromptset};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_model::Money;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::contexts::ContextView;
use crate::registry::ChoiceView;
use crate::vocabulary::{OnExceed, schema};

/// What a repository does with its sources.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositorySettings)]
pub struct SettingsView {
    pub providers: ProvidersView,
    pub contexts: Vec<ContextView>,
    /// What becomes of a concept whose context the repository does not have: `catch_all`, `add` or `skip`.
    #[schema(value_type = schema::UnmappedContexts)]
    pub unmapped_contexts: &'static str,
    /// Whether every processed source is given to the registry.
    pub auto_contribute: bool,
    pub registry: RegistryView,
    /// Whose decompositions are taken besides those of the built-in promptset; empty takes all.
    #[schema(example = json!([]))]
    pub accepted_promptset_hashes: Vec<String>,
    /// The promptset that the repository uses; null is the built-in one.
    #[schema(required)]
    pub promptset_hash: Option<String>,
    pub budget: BudgetView,
    pub stages: StagesView,
    pub ask: AskSettingsView,
}

/// Who may have a model answer questions.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryAsk)]
pub struct AskSettingsView {
    /// Whether everybody who may read facts; otherwise whoever may write reports.
    pub viewers: bool,
    /// What each person may spend on answers in a day (UTC); null for no limit.
    #[schema(required, example = 0.5)]
    pub per_person_per_day_usd: Option<f64>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSettingsChange {
    /// Whether everybody who may read facts may have a model answer, and not only whoever may write reports.
    pub viewers: Option<bool>,
    /// In US dollars; null is what the installation gives each person (`ask.per_person_per_day_usd`).
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<f64>, minimum = 0, example = 0.5)]
    pub per_person_per_day_usd: Option<Option<f64>>,
}

/// Null is something else than nothing.
#[expect(clippy::option_option, reason = "left out, null, or a number")]
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Which providers are switched on.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryProviders)]
pub struct ProvidersView {
    #[schema(example = json!({"academic": true, "web": false}))]
    pub search: BTreeMap<&'static str, bool>,
    #[schema(example = json!({"fetch": true, "open_access": true}))]
    pub resolution: BTreeMap<&'static str, bool>,
}

/// The registry that a repository uses.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryRegistry)]
pub struct RegistryView {
    /// Null is the first one of the installation.
    #[schema(required)]
    pub id: Option<String>,
    /// `facts`, or `concepts` as well.
    #[schema(value_type = schema::PushLevel)]
    pub push_level: &'static str,
    /// Null is what the installation allows for that registry.
    #[schema(required)]
    pub allowed_models: Option<Vec<String>>,
    /// Whose packages and bundles are taken: `anyone`'s, `signed` ones, or those signed by a `listed` key.
    #[schema(value_type = schema::Trust)]
    pub trust: &'static str,
    /// The keys that count where trust is `listed`.
    #[schema(example = json!(["okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"]))]
    pub trusted_keys: Vec<String>,
    /// The registries that the installation can use; the first one is used where none is chosen.
    pub available: Vec<ChoiceView>,
    /// The key with which the installation signs what it contributes; null if it does not.
    #[schema(required, example = "okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub signing_key_id: Option<String>,
}

/// What a repository may spend.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryBudget)]
pub struct BudgetView {
    /// The budget chosen for the repository; null if none was.
    #[schema(required, example = 20.0)]
    pub monthly_usd: Option<f64>,
    /// The budget in force, with the limits of the installation; null for no limit.
    #[schema(required)]
    pub effective_usd: Option<f64>,
    /// The most that may be chosen here; null is no limit.
    #[schema(required)]
    pub max_usd: Option<f64>,
    /// What was spent in this month, which begins and ends in UTC.
    pub spent_usd: f64,
    /// Jobs wait until there is money again.
    #[schema(value_type = schema::OnExceed)]
    pub on_exceed: &'static str,
}

/// Which optional stages sources go through.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryStages)]
#[expect(clippy::struct_excessive_bools, reason = "each is a stage")]
pub struct StagesView {
    pub refinement: bool,
    pub summarization: bool,
    pub synthesis: bool,
    pub image_extraction: bool,
}

/// A provider, on or off.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSwitch {
    /// `web`, `academic`, `fetch`, `open_access`, `tls` or `challenge_solver`.
    #[schema(value_type = schema::Provider)]
    pub provider: String,
    pub enabled: bool,
}

/// On or off.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    pub enabled: bool,
}

/// `id`, `push_level` and `allowed_models` together: what is left out of them is as in a new repository. `trust` and `trusted_keys`
/// stay as they are where they are left out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryChange {
    /// One of the installation's; null is the first one.
    pub id: Option<String>,
    /// `facts`, or `concepts` as well.
    #[schema(value_type = Option<schema::PushLevel>)]
    pub push_level: Option<String>,
    /// Null is what the installation allows.
    #[schema(example = json!(["builtin-extractive-1"]))]
    pub allowed_models: Option<Vec<String>>,
    /// `anyone`: signed or not. `signed`: with a valid signature. `listed`: signed by one of `trusted_keys`.
    #[schema(value_type = Option<schema::Trust>, example = "signed")]
    pub trust: Option<String>,
    /// Ids of signing keys, which are their public halves; at most 100.
    #[schema(example = json!(["okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"]))]
    pub trusted_keys: Option<Vec<String>>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptsetsChange {
    /// SHA-256, in hexadecimal digits; empty accepts all. Left out: as it is.
    #[schema(example = json!([]))]
    pub accepted_promptset_hashes: Option<Vec<String>>,
    /// The promptset that sources are taken apart with from now on; null is the built-in one. Left out: as it is.
    #[serde(default, deserialize_with = "used")]
    #[schema(value_type = Option<String>)]
    pub promptset_hash: UsedPromptset,
}

/// Null is something else than nothing.
fn used<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UsedPromptset, D::Error> {
    let hash: Option<String> = Option::deserialize(deserializer)?;
    Ok(hash.map_or(UsedPromptset::BuiltIn, UsedPromptset::Other))
}

/// The budget of a repository.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetChange {
    /// In US dollars; null is what the installation gives a repository for which nothing was chosen.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, minimum = 0, example = 20.0)]
    pub monthly_usd: Option<f64>,
    /// What happens when the budget is used up: always `pause`.
    #[schema(value_type = Option<schema::OnExceed>)]
    pub on_exceed: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StagesChange {
    pub refinement: Option<bool>,
    pub summarization: Option<bool>,
    #[schema(example = true)]
    pub synthesis: Option<bool>,
    pub image_extraction: Option<bool>,
}

/// What becomes of concepts whose context the repository does not have.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnmappedContextsChange {
    /// `catch_all`: they are filed under `Concept`, and keep the label that the model gave. `add`: the context is added.
    /// `skip`: they are left out, and counted on the source.
    #[schema(value_type = schema::UnmappedContexts)]
    pub unmapped_contexts: String,
}

impl From<SeenSettings> for SettingsView {
    fn from(seen: SeenSettings) -> Self {
        let SeenSettings { settings, contexts, stages, budget, registries, signing_key_id, ask_per_day } =
            seen;
        let on = |list: &[String], id: &'static str| (id, list.iter().any(|one| one == id));
        let search = SearchProvider::ALL.iter().map(|one| on(&settings.search, one.as_str()));
        let resolution = ResolutionProvider::ALL.iter().map(|one| on(&settings.resolution, one.as_str()));
        Self {
            providers: ProvidersView { search: search.collect(), resolution: resolution.collect() },
            contexts: contexts.into_iter().map(ContextView::from).collect(),
            unmapped_contexts: settings.unmapped_contexts.as_str(),
            auto_contribute: settings.auto_contribute,
            registry: RegistryView {
                push_level: settings.push_level.as_str(),
                id: settings.registry_id,
                allowed_models: settings.allowed_models,
                trust: settings.trust.as_str(),
                trusted_keys: settings.trusted_keys,
                available: registries.into_iter().map(ChoiceView::from).collect(),
                signing_key_id,
            },
            accepted_promptset_hashes: settings.accepted_promptset_hashes,
            promptset_hash: settings.promptset_hash.map(|hash| hash.to_string()),
            budget: budget.into(),
            stages: StagesView {
                refinement: stages.refinement,
                summarization: stages.summarization,
                synthesis: stages.synthesis,
                image_extraction: stages.image_extraction,
            },
            ask: AskSettingsView {
                viewers: settings.ask.viewers,
                per_person_per_day_usd: ask_per_day.map(Money::to_usd),
            },
        }
    }
}

impl From<SeenBudget> for BudgetView {
    fn from(budget: SeenBudget) -> Self {
        Self {
            monthly_usd: budget.chosen.map(Money::to_usd),
            effective_usd: budget.effective.map(Money::to_usd),
            max_usd: budget.most.map(Money::to_usd),
            spent_usd: budget.spent.to_usd(),
            on_exceed: OnExceed::Pause.as_str(),
        }
    }
}
