//! Who serves a model, and what an operator should look at when they do not.

use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use okt_config::{Ai, AiProvider, Rerank, Secret};

use super::AiError;
use crate::guarded::{GuardedClient, Request, Service};

pub(super) struct Endpoint {
    words: &'static Words,
    /// `None` when it is turned off.
    service: Option<Service>,
    pub key: Secret,
}

/// What is said of an endpoint.
struct Words {
    name: &'static str,
    off: &'static str,
    address: &'static str,
    no_key: &'static str,
    check_key: &'static str,
    check_address: &'static str,
}

macro_rules! words {
    ($name:literal, $settings:literal) => {
        words!($name, $settings, "base_url")
    };
    ($name:literal, $settings:literal, $url:literal) => {
        Words {
            name: $name,
            off: concat!("the model's endpoint is off; an operator can set ", $settings, ".", $url),
            address: concat!(
                $settings,
                ".",
                $url,
                " can't be asked: write it without a user name and password"
            ),
            no_key: concat!($settings, ".api_key contains characters that are not allowed in a header"),
            check_key: concat!("an operator should check ", $settings, ".api_key and what it is allowed"),
            check_address: concat!(
                "an operator should check ",
                $settings,
                ".",
                $url,
                " and the model's id in providers.ai.models"
            ),
        }
    };
}

static GATEWAY: Words = words!("the model gateway", "providers.ai.gateway");
static CLOUD: Words = words!("the cloud model service", "providers.ai.cloud");
static LOCAL: Words = words!("the local model server", "providers.ai.local");
static RERANKER: Words = words!("the reranker", "search.rerank", "url");

impl Endpoint {
    pub(super) fn new(provider: AiProvider, ai: &Ai, client: &GuardedClient) -> Self {
        let (words, settings) = match provider {
            AiProvider::Gateway => (&GATEWAY, &ai.gateway),
            AiProvider::Cloud => (&CLOUD, &ai.cloud),
            AiProvider::Local => (&LOCAL, &ai.local),
        };
        let service = settings.base_url.as_ref().map(|base| client.service(base));
        Self { words, service, key: settings.api_key.clone() }
    }

    /// One with an address of its own. It is given no key but its own.
    pub(super) fn of_reranker(settings: &Rerank, client: &GuardedClient) -> Self {
        let service = settings.url.as_ref().map(|base| client.service(base));
        Self { words: &RERANKER, service, key: settings.api_key.clone() }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.words.name
    }

    /// A request below the base address, with the key if there is one.
    pub(super) fn request(&self, path: &str, body: Bytes) -> Result<(&Service, Request), AiError> {
        let service = self.service.as_ref().ok_or(AiError::NotConfigured(self.words.off))?;
        let request = Request::post(service.url(path.split('/')), body);
        Ok((service, self.with_key(request)?))
    }

    /// Asks which models there are: it costs nothing and changes nothing.
    pub(super) fn listing(&self) -> Result<(&Service, Request), AiError> {
        let service = self.service.as_ref().ok_or(AiError::NotConfigured(self.words.off))?;
        let request = Request::get(service.url(["models"]));
        Ok((service, self.with_key(request)?))
    }

    fn with_key(&self, request: Request) -> Result<Request, AiError> {
        if self.key.is_empty() {
            return Ok(request);
        }
        let mut key = HeaderValue::from_str(&format!("Bearer {}", self.key.expose()))
            .map_err(|_| AiError::NotConfigured(self.words.no_key))?;
        key.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, key))
    }

    pub(super) const fn wrong_address(&self) -> AiError {
        AiError::NotConfigured(self.words.address)
    }

    /// What to look at when it refuses with this status.
    pub(super) const fn remedy(&self, status: u16) -> &'static str {
        match status {
            401..=403 => self.words.check_key,
            300..=399 | 404 | 405 => self.words.check_address,
            _ => "retrying will not help",
        }
    }
}
