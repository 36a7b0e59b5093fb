//! Shared registries: what others have paid a model for. Every request has a limit of time and of size, and one that failed keeps
//! all others away for a while ([`breaker`]), so a registry that is down costs a source one timeout at most.

mod admission;
mod auth;
mod breaker;
mod graphs;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue};
use okt_config::{AuthMode, Config, Secret};
use okt_interchange::origin::{self, SigningKey};
use okt_interchange::package;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::guarded::{FetchError, GuardedClient, Request, Response, Service, Timeouts};
pub use admission::Admission;
use breaker::Breaker;
pub use graphs::{Graph, GraphPage, NewGraph, PulledGraph, PushedGraph};

/// What is signed over a package, and handed on with it.
const SIGNATURE: http::HeaderName = http::HeaderName::from_static(origin::HEADER);

const MAX_ANSWER: u64 = 4 << 20;
/// Packages that are read at once: each may be large.
const PULLS: usize = 2;
/// A push waits longer than a search: nobody waits for it.
const PUSH: Duration = Duration::from_mins(2);

/// The registries of this installation.
#[derive(Clone)]
pub struct Registries {
    all: Arc<Vec<Registry>>,
    per_page: u32,
}

/// One of them.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    id: String,
    service: Service,
    auth: auth::Auth,
    allowed_models: Vec<String>,
    signing_key: Option<Arc<SigningKey>>,
    per_page: u32,
    timeout: Duration,
    breaker: Breaker,
    pulls: Semaphore,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the registry {registry} failed a moment ago and is not asked")]
    Resting { registry: String },

    #[error("the registry {registry} did not answer as expected")]
    Failed {
        registry: String,
        #[source]
        cause: okt_model::Cause,
    },

    /// It understood, and does not want to.
    #[error("the registry {registry} answered {status}: {detail}")]
    Refused { registry: String, status: u16, detail: String },

    /// What it handed out is not to be used.
    #[error("the registry {registry} handed out a package that is refused: {refused}")]
    Package { registry: String, refused: package::Refused },

    /// Somebody has altered it, or made the signature up.
    #[error("the registry {registry} handed out something whose signature is not valid")]
    Signature { registry: String },

    /// It may be right; it is not wanted.
    #[error("the registry {registry} has it, and it is not taken: {reason}")]
    Unwanted { registry: String, reason: &'static str },
}

impl RegistryError {
    /// Whether the same may succeed later.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Resting { .. } | Self::Failed { .. } => true,
            Self::Refused { status, .. } => *status == 429,
            Self::Package { .. } | Self::Signature { .. } | Self::Unwanted { .. } => false,
        }
    }
}

/// A source by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What a registry knows of a source beside its decompositions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrySource {
    #[serde(default, alias = "id", skip_serializing)]
    pub source_id: String,
    #[serde(flatten)]
    pub names: Names,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// A date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
}

/// A decomposition that can be pulled.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Decomposition {
    pub model_id: String,
    #[serde(default)]
    pub fact_count: u64,
    #[serde(default)]
    pub promptset_hash: Option<String>,
    #[serde(default)]
    pub embedding_model: Option<String>,
    #[serde(default)]
    pub decomposed_at: Option<String>,
    /// The key that pushed it.
    #[serde(default)]
    pub pushed_by: Option<String>,
    /// Whether it comes with a signature.
    #[serde(default)]
    pub signed: bool,
    /// Whose, as the registry says.
    #[serde(default)]
    pub key_id: Option<String>,
}

/// What a search found.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Found {
    #[serde(default)]
    pub found: bool,
    #[serde(default)]
    pub source: Option<RegistrySource>,
    #[serde(default)]
    pub decompositions: Vec<Decomposition>,
}

/// A package as it arrived.
#[derive(Clone, Debug)]
pub struct Pulled {
    pub source: RegistrySource,
    pub body: Vec<u8>,
    pub sha256: [u8; 32],
    /// The key that signed it, verified.
    pub key_id: Option<String>,
    /// Who pushed it, as the registry says.
    pub pushed_by: Option<String>,
}

/// What is not handed out any more: a page of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Withdrawals {
    pub data: Vec<WithdrawnItem>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct WithdrawnItem {
    /// Of a package as it was pushed, or of a graph.
    pub sha256: String,
    pub withdrawn_at: DateTime<Utc>,
    #[serde(default)]
    pub reason: String,
}

/// What came of a push.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pushed {
    #[serde(default)]
    pub source_id: String,
    #[serde(default)]
    pub facts_new: u64,
    #[serde(default)]
    pub facts_linked: u64,
}

impl Registries {
    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        let single = &config.providers.registry;
        let signing_key = SigningKey::read(single.signing_key.expose()).map(Arc::new);
        let registry = |id: &str, url: &Url, auth: (AuthMode, &Secret, &Secret), models: &[String]| {
            Registry(Arc::new(Inner {
                id: id.to_owned(),
                service: client.service(url),
                auth: auth::Auth::new(auth.0, auth.1, auth.2),
                allowed_models: models.to_vec(),
                signing_key: signing_key.clone(),
                per_page: single.per_page,
                timeout: single.timeout.duration(),
                breaker: Breaker::default(),
                pulls: Semaphore::new(PULLS),
            }))
        };
        let mut all: Vec<Registry> = (config.providers.registries.iter())
            .map(|entry| {
                let auth = (entry.auth_mode, &entry.api_key, &entry.read_api_key);
                registry(&entry.id, &entry.url, auth, &entry.allowed_models)
            })
            .collect();
        if let Some(url) = single.url.as_ref().filter(|_| all.is_empty()) {
            let auth = (single.auth_mode, &single.api_key, &single.read_api_key);
            all.push(registry("default", url, auth, &single.allowed_models));
        }
        Self { all: Arc::new(all), per_page: single.per_page }
    }

    /// How much is asked for at once.
    pub const fn per_page(&self) -> u32 {
        self.per_page
    }

    pub fn iter(&self) -> impl Iterator<Item = &Registry> {
        self.all.iter()
    }

    /// The one that a repository chose, or else the first.
    pub fn get(&self, id: Option<&str>) -> Option<&Registry> {
        match id {
            Some(id) => self.all.iter().find(|registry| registry.0.id == id),
            None => self.all.first(),
        }
    }
}

impl Registry {
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The models whose packages are taken from it.
    pub fn allowed_models(&self) -> &[String] {
        &self.0.allowed_models
    }

    /// With what it is signed that is given to it.
    pub fn signing_key_id(&self) -> Option<&str> {
        self.0.signing_key.as_deref().map(SigningKey::id)
    }

    /// Looks a source up.
    pub async fn find(&self, names: &Names) -> Result<Found, RegistryError> {
        let turn = self.0.breaker.enter(self.0.timeout).ok_or_else(|| self.resting())?;
        let found = timeout(self.0.timeout, self.search(names)).await;
        let ended = found.unwrap_or_else(|_| Err(self.failed("it took too long")));
        turn.end(!matches!(&ended, Err(RegistryError::Failed { .. })));
        ended
    }

    /// What it does not hand out any more since then, the oldest first; `after` is where the last page ended.
    pub async fn withdrawals(
        &self,
        since: Option<DateTime<Utc>>,
        after: Option<&str>,
    ) -> Result<Withdrawals, RegistryError> {
        let mut url = self.0.service.url(["api", "v1", "withdrawals"]);
        url.query_pairs_mut().append_pair("limit", &self.0.per_page.to_string());
        if let Some(since) = since {
            url.query_pairs_mut().append_pair("since", &since.to_rfc3339());
        }
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("cursor", after);
        }
        self.read(url, MAX_ANSWER).await
    }

    /// An answer in JSON.
    async fn read<T: DeserializeOwned>(&self, url: Url, limit: u64) -> Result<T, RegistryError> {
        let request =
            self.0.auth.read(Request::get(url.clone()), &url).map_err(|cause| self.failed(cause))?;
        let body = self.good(self.send(request, limit, self.0.timeout).await?).await?;
        serde_json::from_slice(&body).map_err(|error| self.failed(error))
    }

    /// The key that signed what has this hash; an error if it is no signature over that.
    fn signed_by(&self, headers: &HeaderMap, sha256: &[u8; 32]) -> Result<Option<String>, RegistryError> {
        let Some(signature) = headers.get(SIGNATURE) else { return Ok(None) };
        let key = signature.to_str().ok().and_then(|signature| origin::verified(signature, sha256));
        key.map(Some).ok_or_else(|| RegistryError::Signature { registry: self.0.id.clone() })
    }

    /// Looks a source up, and pulls the decomposition that `choose` picks. All of it within one timeout; whatever goes wrong is an
    /// error, and none that a source has to fail for.
    pub async fn look_up(
        &self,
        names: &Names,
        choose: impl FnOnce(&Found) -> Option<Decomposition>,
    ) -> Result<Option<Pulled>, RegistryError> {
        let turn = self.0.breaker.enter(self.0.timeout).ok_or_else(|| self.resting())?;
        let looked = timeout(self.0.timeout, async {
            let found = self.search(names).await?;
            let Some(source) = found.source.clone().filter(|_| found.found) else { return Ok(None) };
            let Some(chosen) = choose(&found) else { return Ok(None) };
            self.pull(source, chosen).await.map(Some)
        });
        let ended = looked.await.unwrap_or_else(|_| Err(self.failed("it took too long")));
        turn.end(!matches!(&ended, Err(RegistryError::Failed { .. })));
        ended
    }

    async fn search(&self, names: &Names) -> Result<Found, RegistryError> {
        let mut url = self.0.service.url(["api", "v1", "search"]);
        for (name, value) in [("url", &names.url), ("doi", &names.doi), ("sha256", &names.sha256)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.read(url, MAX_ANSWER).await
    }

    async fn pull(&self, source: RegistrySource, chosen: Decomposition) -> Result<Pulled, RegistryError> {
        let _permit = self.0.pulls.acquire().await.map_err(|error| self.failed(error))?;
        let url = self.decomposition(&source.source_id, &chosen.model_id);
        let request =
            self.0.auth.read(Request::get(url.clone()), &url).map_err(|cause| self.failed(cause))?;
        let answer = self.send(request, package::MAX_BYTES, self.0.timeout).await?;
        let headers = answer.headers.clone();
        let body = self.good(answer).await?;
        let sha256 = Sha256::digest(&body).into();
        let key_id = self.signed_by(&headers, &sha256)?;
        Ok(Pulled { source, body, sha256, key_id, pushed_by: chosen.pushed_by })
    }

    /// Gives it a package, signed if this installation signs; the source is made known first.
    pub async fn push(
        &self,
        source: &RegistrySource,
        model: &str,
        package: &[u8],
    ) -> Result<Pushed, RegistryError> {
        #[derive(Deserialize)]
        struct Made {
            source_id: String,
        }
        let turn = self.0.breaker.enter(PUSH).ok_or_else(|| self.resting())?;
        let signature = self.signature(&Sha256::digest(package).into());
        let pushed = async {
            let url = self.0.service.url(["api", "v1", "sources"]);
            let body = serde_json::to_vec(source).map_err(|error| self.failed(error))?;
            let answer = self.post(&url, body, None).await?;
            let made: Made = serde_json::from_slice(&answer).map_err(|error| self.failed(error))?;
            let url = self.decomposition(&made.source_id, model);
            let answer = self.post(&url, package.to_vec(), signature.as_deref()).await?;
            let pushed: Pushed = serde_json::from_slice(&answer).map_err(|error| self.failed(error))?;
            Ok(Pushed { source_id: made.source_id, ..pushed })
        };
        let ended = pushed.await;
        turn.end(!matches!(&ended, Err(RegistryError::Failed { .. })));
        ended
    }

    async fn post(
        &self,
        url: &Url,
        body: Vec<u8>,
        signature: Option<&str>,
    ) -> Result<Vec<u8>, RegistryError> {
        let mut request = Request::post(url.clone(), body.clone().into());
        if let Some(value) = signature.and_then(|signature| HeaderValue::from_str(signature).ok()) {
            request = request.header(SIGNATURE, value);
        }
        let request = self.0.auth.write(request, url, &body).map_err(|cause| self.failed(cause))?;
        self.good(self.send(request, MAX_ANSWER, PUSH).await?).await
    }

    async fn send(&self, request: Request, limit: u64, total: Duration) -> Result<Response, RegistryError> {
        let timeouts = Timeouts { total, ..Timeouts::default() };
        let sent = self.0.service.send(request.max_bytes(limit).timeouts(timeouts)).await;
        sent.map_err(|error: FetchError| self.failed(error))
    }

    /// The body of a good answer.
    async fn good(&self, answer: Response) -> Result<Vec<u8>, RegistryError> {
        let status = answer.status;
        let body = answer.bytes().await.map_err(|error| self.failed(error))?;
        match status.as_u16() {
            200..=299 => Ok(body),
            status @ (400..=499) => {
                let detail = serde_json::from_slice::<serde_json::Value>(&body).ok();
                let detail =
                    detail.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or("no reason");
                let detail = detail.chars().filter(|c| !c.is_control()).take(500).collect();
                Err(RegistryError::Refused { registry: self.0.id.clone(), status, detail })
            }
            status => Err(self.failed(format!("it answered {status}"))),
        }
    }

    fn signature(&self, sha256: &[u8; 32]) -> Option<String> {
        self.0.signing_key.as_ref().map(|key| key.sign(sha256))
    }

    fn decomposition(&self, source: &str, model: &str) -> Url {
        self.0.service.url(["api", "v1", "sources", source, "decompositions", model])
    }

    fn failed(&self, cause: impl Into<okt_model::Cause>) -> RegistryError {
        RegistryError::Failed { registry: self.0.id.clone(), cause: cause.into() }
    }

    fn resting(&self) -> RegistryError {
        RegistryError::Resting { registry: self.0.id.clone() }
    }
}
