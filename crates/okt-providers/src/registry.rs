//! Shared registries: what others have paid a model for. Every request has a limit of time and of size, and one that failed keeps
//! all others away for a while ([`breaker`]), so a registry that is down costs a source one timeout at most.

mod admission;
mod answers;
mod auth;
mod breaker;
mod graphs;
mod pace;
mod secrecy;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, StatusCode};
use okt_config::{AuthMode, Config, Secret};
use okt_interchange::origin::{self, SigningKey};
use okt_interchange::package;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::guarded::{FetchError, GuardedClient, Request, Response, Service, Timeouts};
use crate::retry_after::retry_after;
pub use admission::Admission;
pub use answers::{Decomposition, Found, Names, Pulled, Pushed, RegistrySource, Withdrawals, WithdrawnItem};
use breaker::Breaker;
pub use graphs::{Graph, GraphPage, NewGraph, PulledGraph, PushedGraph};
use pace::Pace;

/// What is signed over a package, and handed on with it.
const SIGNATURE: http::HeaderName = http::HeaderName::from_static(origin::HEADER);

const MAX_ANSWER: u64 = 4 << 20;
/// Packages that are read at once: each may be large.
const PULLS: usize = 2;
/// MiB of packages in memory until they are imported, of all registries together; one of the largest in any case.
const ROOM: u32 = 128;
/// A push waits longer than a search: nobody waits for it.
const PUSH: Duration = Duration::from_mins(2);
/// In a page: all repositories look at each.
const WITHDRAWALS: &str = "200";
const WORTH_WAITING: Duration = Duration::from_mins(10);

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
    client: GuardedClient,
    service: Service,
    auth: auth::Auth,
    allowed_models: Vec<String>,
    signing_key: Option<Arc<SigningKey>>,
    per_page: u32,
    timeout: Duration,
    package_bytes: u64,
    breaker: Breaker,
    /// Of pushes: what takes nothing may still be asked.
    pushes: Breaker,
    pace: Pace,
    /// Until when it takes no pushes.
    push_pace: Pace,
    pulls: Semaphore,
    room: Arc<Semaphore>,
}

struct Downloaded {
    body: Vec<u8>,
    sha256: [u8; 32],
    key_id: Option<String>,
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

    /// It was asked too often, and says when to come again; or there was no turn for us.
    #[error("the registry {registry} is asked too often; it can be asked again in {} s", .after.as_secs())]
    Busy { registry: String, after: Duration },

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
            Self::Resting { .. } | Self::Failed { .. } | Self::Busy { .. } => true,
            Self::Refused { status, .. } => *status == 503,
            Self::Package { .. } | Self::Signature { .. } | Self::Unwanted { .. } => false,
        }
    }

    /// When it wants to be asked again, if that is worth waiting for: what it grants in a day is not.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Busy { after, .. } if *after <= WORTH_WAITING => Some((*after).max(Duration::from_secs(1))),
            _ => None,
        }
    }
}

impl Registries {
    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        let single = &config.providers.registry;
        let signing_key = SigningKey::read(single.signing_key.expose()).map(Arc::new);
        let room = ROOM.max(mebibytes(config.server.limits.package_bytes));
        let room = Arc::new(Semaphore::new(room as usize));
        let registry = |id: &str, url: &Url, auth: (AuthMode, &Secret, &Secret), models: &[String]| {
            Registry(Arc::new(Inner {
                id: id.to_owned(),
                client: client.clone(),
                service: client.service(url),
                auth: auth::Auth::new(auth.0, auth.1, auth.2),
                allowed_models: models.to_vec(),
                signing_key: signing_key.clone(),
                per_page: single.per_page,
                timeout: single.timeout.duration(),
                package_bytes: config.server.limits.package_bytes,
                breaker: Breaker::default(),
                pushes: Breaker::default(),
                pace: Pace::default(),
                push_pace: Pace::default(),
                pulls: Semaphore::new(PULLS),
                room: Arc::clone(&room),
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
        url.query_pairs_mut().append_pair("limit", WITHDRAWALS);
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

    /// Pulls one of those that a search found, within the time that is `left` for the registry, which gets less by what it takes. Whatever
    /// goes wrong is an error, and none that a source has to fail for.
    pub async fn pull(
        &self,
        source: &RegistrySource,
        chosen: &Decomposition,
        left: &mut Duration,
    ) -> Result<Pulled, RegistryError> {
        // Waiting for our own turn says nothing about the registry, and is over when it fails those before us. Where that takes long, the
        // package is still to be had: who comes again holds no place meanwhile.
        let permit = timeout(2 * self.0.timeout, self.0.pulls.acquire()).await;
        let permit =
            permit.map_err(|_| RegistryError::Busy { registry: self.0.id.clone(), after: self.0.timeout })?;
        let _permit = permit.map_err(|error| self.failed(error))?;
        let turn = self.0.breaker.enter(self.0.timeout).ok_or_else(|| self.resting())?;
        let begun = Instant::now();
        let pulled = timeout(*left, self.download(source, chosen)).await;
        *left = left.saturating_sub(begun.elapsed());
        let ended = pulled.unwrap_or_else(|_| Err(self.failed("it took too long")));
        turn.end(!matches!(&ended, Err(RegistryError::Failed { .. })));
        let Downloaded { body, sha256, key_id } = ended?;
        let room = Arc::clone(&self.0.room).acquire_many_owned(mebibytes(body.len() as u64).max(1));
        let room = room.await.map_err(|error| self.failed(error))?;
        Ok(Pulled { room, body, sha256, key_id, pushed_by: chosen.pushed_by.clone() })
    }

    /// All that it may take for one source.
    pub fn timeout(&self) -> Duration {
        self.0.timeout
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

    async fn download(
        &self,
        source: &RegistrySource,
        chosen: &Decomposition,
    ) -> Result<Downloaded, RegistryError> {
        let mut url = self.decomposition(&source.source_id, &chosen.model_id);
        if let Some(version) = chosen.version {
            url.query_pairs_mut().append_pair("version", &version.to_string());
        }
        let request =
            self.0.auth.read(Request::get(url.clone()), &url).map_err(|cause| self.failed(cause))?;
        let answer = self.send(request, self.0.package_bytes, self.0.timeout).await?;
        let headers = answer.headers.clone();
        let body = self.good(answer).await?;
        let sha256 = Sha256::digest(&body).into();
        let key_id = self.signed_by(&headers, &sha256)?;
        Ok(Downloaded { body, sha256, key_id })
    }

    /// How long it takes no pushes yet: whoever asks first makes no package for nothing.
    pub fn pushes_wait(&self) -> Option<Duration> {
        self.0.push_pace.left()
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
        if let Some(after) = self.pushes_wait() {
            return Err(RegistryError::Busy { registry: self.0.id.clone(), after });
        }
        let turn = self.0.pushes.enter(PUSH).ok_or_else(|| self.resting())?;
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
        if let Err(RegistryError::Busy { after, .. }) = &ended {
            self.0.push_pace.hold_pushes(*after);
        }
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
        if let Some(after) = self.0.pace.left() {
            return Err(RegistryError::Busy { registry: self.0.id.clone(), after });
        }
        let timeouts = Timeouts { total, ..Timeouts::default() };
        let sent = self.0.service.send(request.max_bytes(limit).timeouts(timeouts)).await;
        sent.map_err(|error: FetchError| self.failed(error))
    }

    /// The body of a good answer.
    async fn good(&self, answer: Response) -> Result<Vec<u8>, RegistryError> {
        let status = answer.status;
        if status == StatusCode::TOO_MANY_REQUESTS {
            let after = retry_after(&answer.headers).unwrap_or(pace::UNSAID);
            self.0.pace.hold(after);
            return Err(RegistryError::Busy { registry: self.0.id.clone(), after });
        }
        let body = answer.bytes().await.map_err(|error| self.failed(error))?;
        let told = serde_json::from_slice::<serde_json::Value>(&body).ok();
        let told = told.as_ref().and_then(|problem| problem["detail"].as_str());
        match (status.as_u16(), told) {
            (200..=299, _) => Ok(body),
            // It is well, and has too much to do.
            (status @ (400..=499 | 503), told) if told.is_some() || status != 503 => {
                let detail = told.unwrap_or("no reason").chars().filter(|c| !c.is_control()).take(500);
                let (registry, detail) = (self.0.id.clone(), detail.collect());
                Err(RegistryError::Refused { registry, status, detail })
            }
            (status, _) => Err(self.failed(format!("it answered {status}"))),
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

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
