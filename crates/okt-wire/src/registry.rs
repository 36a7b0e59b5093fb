//! Registries: what they have, and what came from them.

use chrono::{DateTime, Utc};
use okt_app::{Decomposition, Graph, GraphPage, RegistryChoice, RegistrySource, SeenFound};
use okt_config::AuthMode;
use okt_model::{Error, ImportOrigin, Locator};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::vocabulary::schema;

/// Where something came from that was not made here.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportOrigin)]
pub struct OriginView {
    /// `package`: what a registry had of one source. `bundle`: a repository of somebody else.
    #[schema(value_type = schema::ImportKind)]
    pub kind: &'static str,
    /// The id of the registry in the configuration; null for a bundle that somebody uploaded.
    #[schema(required, example = "default")]
    pub registry: Option<String>,
    /// The key that signed it; null for nobody.
    #[schema(required, example = "okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub key_id: Option<String>,
    /// The key that gave it to the registry, as the registry says.
    #[schema(required, example = "okg_0a1b2c3d4e5f")]
    pub pushed_by: Option<String>,
    /// SHA-256 of the package as it was sent, or the hash of the bundle.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: String,
    pub imported_at: DateTime<Utc>,
    /// Since when the registry does not hand it out any more, and why; null while it does.
    #[schema(required)]
    pub withdrawn: Option<WithdrawnView>,
}

/// That a registry does not hand something out any more.
#[derive(Serialize, ToSchema)]
#[schema(as = Withdrawn)]
pub struct WithdrawnView {
    pub at: DateTime<Utc>,
    #[schema(example = "its facts are not in the source")]
    pub reason: String,
}

impl From<ImportOrigin> for OriginView {
    fn from(origin: ImportOrigin) -> Self {
        Self {
            kind: origin.kind.as_str(),
            registry: origin.registry,
            key_id: origin.key_id,
            pushed_by: origin.pushed_by,
            sha256: origin.sha256.to_string(),
            imported_at: origin.imported_at,
            withdrawn: origin.withdrawn.map(|(at, reason)| WithdrawnView { at, reason }),
        }
    }
}

/// A registry that the installation can use.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryChoice)]
pub struct ChoiceView {
    #[schema(example = "default")]
    pub id: String,
    #[schema(example = "https://registry.example.org/")]
    pub url: String,
    /// How the installation authenticates there: `none`, `bearer` or `hmac`.
    #[schema(value_type = schema::AuthMode)]
    pub auth_mode: &'static str,
    /// The models whose packages the installation takes; `*` is any.
    #[schema(example = json!(["*"]))]
    pub allowed_models: Vec<String>,
}

impl From<RegistryChoice> for ChoiceView {
    fn from(choice: RegistryChoice) -> Self {
        Self {
            id: choice.id,
            url: choice.url,
            auth_mode: auth_mode(choice.auth_mode),
            allowed_models: choice.allowed_models,
        }
    }
}

pub(crate) const fn auth_mode(mode: AuthMode) -> &'static str {
    match mode {
        AuthMode::None => "none",
        AuthMode::Bearer => "bearer",
        AuthMode::Hmac => "hmac",
    }
}

/// A source by its address or DOI.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RegistryQuery {
    /// The address of the source; give this or `doi`.
    #[param(example = "https://example.org/bees")]
    url: Option<String>,
    /// The DOI of the source; give this or `url`.
    #[param(example = "10.1000/182")]
    doi: Option<String>,
}

impl RegistryQuery {
    pub fn parsed(self) -> Result<Locator, Error> {
        match (self.url, self.doi) {
            (Some(url), None) => named("url", &url),
            (None, Some(doi)) => {
                let locator = named("doi", &doi)?;
                if locator.doi.is_some() { Ok(locator) } else { Err(Error::invalid("doi", "is not a DOI")) }
            }
            _ => Err(Error::invalid("url", "give either url or doi")),
        }
    }
}

fn named(field: &'static str, text: &str) -> Result<Locator, Error> {
    Locator::parse(text).map_err(|error| Error::invalid(field, error.to_string()))
}

/// What a registry has of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryAnswer)]
pub struct FoundView {
    /// The id of the registry that was asked.
    #[schema(example = "default")]
    pub registry: String,
    /// Whether it has a package of the source.
    pub found: bool,
    #[schema(required)]
    pub source: Option<FoundSourceView>,
    pub decompositions: Vec<PackageView>,
}

/// A source, as a registry knows it. Its texts come from third parties.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryAnswerSource)]
pub struct FoundSourceView {
    /// The id of the source in the registry.
    #[schema(example = "0197a3c0-0000-7000-8000-000000000001")]
    pub source_id: String,
    #[schema(required, example = "https://example.org/bees")]
    pub url: Option<String>,
    #[schema(required, example = "10.1000/182")]
    pub doi: Option<String>,
    #[schema(required, example = "Bees of Europe")]
    pub title: Option<String>,
    #[schema(required, example = "Ada Lovelace")]
    pub author: Option<String>,
    #[schema(required, example = "html")]
    pub kind: Option<String>,
    #[schema(required, example = "en")]
    pub language: Option<String>,
    /// A date, in the words of the registry.
    #[schema(required, example = "2026-01-02")]
    pub published_at: Option<String>,
}

/// A package that a registry has.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryAnswerPackage)]
pub struct PackageView {
    #[schema(example = "example/model-1")]
    pub model_id: String,
    pub fact_count: u64,
    #[schema(required, example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub promptset_hash: Option<String>,
    #[schema(required, example = "example/embedding-1")]
    pub embedding_model: Option<String>,
    /// A time, in the words of the registry.
    #[schema(required, example = "2026-01-02T03:04:05Z")]
    pub decomposed_at: Option<String>,
    /// The key that gave it to the registry.
    #[schema(required, example = "okg_0a1b2c3d4e5f")]
    pub pushed_by: Option<String>,
    pub signed: bool,
    /// Whether the repository would take it, as far as the registry tells. Whose signature it is can only be seen in the package.
    pub admitted: bool,
    /// Why it would not.
    #[schema(required, example = "its model is not one of the allowed models")]
    pub reason: Option<&'static str>,
}

impl From<SeenFound> for FoundView {
    fn from(seen: SeenFound) -> Self {
        Self {
            registry: seen.registry,
            found: !seen.decompositions.is_empty(),
            source: seen.source.map(Into::into),
            decompositions: seen.decompositions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<RegistrySource> for FoundSourceView {
    fn from(source: RegistrySource) -> Self {
        Self {
            source_id: source.source_id,
            url: source.names.url,
            doi: source.names.doi,
            title: source.title,
            author: source.author,
            kind: source.kind,
            language: source.language,
            published_at: source.published_at,
        }
    }
}

impl From<(Decomposition, Option<&'static str>)> for PackageView {
    fn from((package, reason): (Decomposition, Option<&'static str>)) -> Self {
        Self {
            model_id: package.model_id,
            fact_count: package.fact_count.unwrap_or_default(),
            promptset_hash: package.promptset_hash,
            embedding_model: package.embedding_model,
            decomposed_at: package.decomposed_at,
            pushed_by: package.pushed_by,
            signed: package.signed,
            admitted: reason.is_none(),
            reason,
        }
    }
}

/// Which bundles of a registry are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GraphsQuery {
    /// The registry; by default that of the repository.
    #[param(example = "default")]
    pub registry_id: Option<String>,
    /// A part of the name or the description.
    #[param(example = "bees")]
    pub q: Option<String>,
    /// One of the tags.
    #[param(example = "bees")]
    pub tag: Option<String>,
    /// `next_cursor` of the previous response.
    pub cursor: Option<String>,
}

/// A page of the bundles of a registry.
#[derive(Serialize, ToSchema)]
pub struct RegistryGraphs {
    pub data: Vec<RegistryGraphView>,
    /// The cursor of the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A bundle of a registry. Its texts come from third parties.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryGraphListed)]
pub struct RegistryGraphView {
    /// To be given to `POST …/import-graph` as `registry_graph_id`.
    #[schema(example = "0197a3c0-0000-7000-8000-000000000001")]
    pub graph_id: String,
    #[schema(example = "Bees of Europe")]
    pub name: String,
    #[schema(example = "What is known of them.")]
    pub description: String,
    #[schema(example = json!(["bees"]))]
    pub tags: Vec<String>,
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: String,
    pub schema_version: i32,
    pub source_count: i64,
    pub fact_count: i64,
    pub concept_count: i64,
    pub bytes: u64,
    /// The key that gave it to the registry.
    #[schema(required, example = "okg_0a1b2c3d4e5f")]
    pub owner: Option<String>,
    pub signed: bool,
    #[schema(required)]
    pub created_at: Option<DateTime<Utc>>,
}

impl From<GraphPage> for RegistryGraphs {
    fn from(page: GraphPage) -> Self {
        Self { data: page.data.into_iter().map(Into::into).collect(), next_cursor: page.next_cursor }
    }
}

impl From<Graph> for RegistryGraphView {
    fn from(graph: Graph) -> Self {
        Self {
            graph_id: graph.graph_id,
            name: graph.name,
            description: graph.description,
            tags: graph.tags,
            sha256: graph.sha256,
            schema_version: graph.schema_version,
            source_count: graph.source_count,
            fact_count: graph.fact_count,
            concept_count: graph.concept_count,
            bytes: graph.bytes,
            owner: graph.owner,
            signed: graph.signed,
            created_at: graph.created_at,
        }
    }
}
