//! Clients: programs that ask to act for people.

use okt_auth::oauth::{BadRegistration, Metadata, Registration};
use okt_auth::opaque::{self, Prefix};
use okt_config::Secret;
use okt_model::{ClientNumber, Error, OAuthClient, Result};
use okt_store::oauth_clients::{self, Found, NewClient};
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::Refusal;
use crate::audit::{Actor, record};
use crate::{App, Origin};

/// A registration with the secrets that are told this once.
pub struct Registered {
    pub client: OAuthClient,
    pub secret: Option<Secret>,
    /// For reading, changing and deleting the registration.
    pub management: Secret,
}

/// What a client came with to the token endpoint.
#[derive(Clone, Copy, Debug)]
pub struct ClientCredentials<'a> {
    pub id: &'a str,
    pub secret: Option<&'a str>,
    /// `none`, `client_secret_basic` or `client_secret_post`.
    pub method: &'a str,
}

impl App {
    /// Registers a client that nobody knows (RFC 7591). It can do nothing until a person lets it in.
    pub async fn register_client(&self, origin: &Origin, document: &Value) -> Result<Registered, Refusal> {
        let metadata = Metadata::parse(document, Registration::Dynamic)?;
        let id = format!("client_{}", ClientNumber::mint().uuid().simple());
        let secret =
            (metadata.auth_method != "none").then(|| opaque::mint(Prefix::ClientSecret)).transpose()?;
        let (management, registration) = opaque::mint(Prefix::ClientRegistration)?;
        let words = metadata.scope.as_ref().map(okt_model::Scope::words);
        let new = NewClient {
            secret: secret.as_ref().map(|(_, hash)| hash.as_bytes()),
            registration: Some(registration.as_bytes()),
            ..described(&id, &metadata, words.as_deref())
        };
        let mut tx = self.databases().begin_system().await?;
        let client = oauth_clients::put(&mut tx, &new).await?;
        record(&mut tx, origin, Actor::STRANGER, "client.registered", &id).await?;
        tx.commit().await?;
        Ok(Registered { client, secret: secret.map(|(secret, _)| secret), management })
    }

    /// The registration, for whoever holds its token, which is exchanged for another (RFC 7592).
    pub async fn read_registration(
        &self,
        origin: &Origin,
        id: &str,
        token: &str,
    ) -> Result<Registered, Refusal> {
        let (found, before) = self.managed(id, token).await?;
        let client = found.client;
        let metadata = Metadata {
            name: client.name,
            uri: client.uri,
            redirect_uris: client.redirect_uris,
            grant_types: client.grant_types,
            scope: client.scope,
            auth_method: client.auth_method,
        };
        self.rewrite(origin, id, &before, &metadata, None).await
    }

    /// Changes the registration; what came of it before stays.
    pub async fn update_registration(
        &self,
        origin: &Origin,
        id: &str,
        token: &str,
        document: &Value,
    ) -> Result<Registered, Refusal> {
        let (found, before) = self.managed(id, token).await?;
        if document["client_id"].as_str().is_some_and(|given| given != id) {
            return Err(Refusal::new("invalid_client_metadata", "client_id: can't be changed"));
        }
        let metadata = Metadata::parse(document, Registration::Dynamic)?;
        let stated = document.get("token_endpoint_auth_method").is_some();
        if stated && metadata.auth_method != found.client.auth_method {
            let description = "token_endpoint_auth_method: can't be changed; register anew";
            return Err(Refusal::new("invalid_client_metadata", description));
        }
        self.rewrite(origin, id, &before, &metadata, Some("client.updated")).await
    }

    /// Deletes the registration and ends all that came of it.
    pub async fn delete_registration(&self, origin: &Origin, id: &str, token: &str) -> Result<(), Refusal> {
        let (_, hash) = self.managed(id, token).await?;
        let mut tx = self.databases().begin_system().await?;
        if !oauth_clients::delete(&mut tx, id, hash.as_bytes()).await? {
            return Err(UNMANAGED.into());
        }
        record(&mut tx, origin, Actor::STRANGER, "client.deleted", id).await?;
        Ok(tx.commit().await?)
    }

    /// The client with this id, if there is one, as it is now.
    pub async fn find_client(&self, id: &str) -> Result<Option<OAuthClient>> {
        match self.kept_client(id).await? {
            Some(found) if !found.stale => Ok(Some(found.client)),
            // What the document said before is no help when it can't be read now: it may have been withdrawn.
            _ => self.read_document(id).await,
        }
    }

    /// The client that proves to be itself.
    pub async fn authenticate_client(&self, given: ClientCredentials<'_>) -> Result<OAuthClient, Refusal> {
        let unknown =
            || Refusal::new("invalid_client", "the client is not known, or did not prove who it is");
        // By what is kept: whoever has something to exchange or revoke was here before. A document is read again when
        // people are asked, so that strangers can't make us fetch here, and a document that is away stops nobody.
        let found = self.kept_client(given.id).await?.ok_or_else(unknown)?;
        if found.client.auth_method != given.method {
            return Err(unknown());
        }
        let proven = match (&found.secret, given.secret) {
            (None, None) => true,
            (Some(kept), Some(secret)) => opaque::parse(Prefix::ClientSecret, secret)
                .is_some_and(|hash| bool::from(kept.as_slice().ct_eq(hash.as_bytes()))),
            _ => false,
        };
        if proven { Ok(found.client) } else { Err(unknown()) }
    }

    async fn kept_client(&self, id: &str) -> Result<Option<Found>> {
        // PostgreSQL can't hold the character, so nobody is called that.
        if id.contains('\0') {
            return Ok(None);
        }
        let mut conn = self.databases().acquire_system().await?;
        let found = oauth_clients::find(&mut conn, id).await?;
        Ok(found)
    }

    /// Whether the token manages this client.
    async fn managed(&self, id: &str, token: &str) -> Result<(Found, opaque::Hash)> {
        let hash = opaque::parse(Prefix::ClientRegistration, token).ok_or(UNMANAGED)?;
        let found = self.kept_client(id).await?.ok_or(UNMANAGED)?;
        let theirs = found.registration.as_deref().is_some_and(|kept| kept.ct_eq(hash.as_bytes()).into());
        if theirs { Ok((found, hash)) } else { Err(UNMANAGED) }
    }

    async fn rewrite(
        &self,
        origin: &Origin,
        id: &str,
        before: &opaque::Hash,
        metadata: &Metadata,
        action: Option<&'static str>,
    ) -> Result<Registered, Refusal> {
        let (management, registration) = opaque::mint(Prefix::ClientRegistration)?;
        let words = metadata.scope.as_ref().map(okt_model::Scope::words);
        let described = described(id, metadata, words.as_deref());
        let new = NewClient { registration: Some(registration.as_bytes()), ..described };
        let mut tx = self.databases().begin_system().await?;
        let client = oauth_clients::update(&mut tx, before.as_bytes(), &new).await?.ok_or(UNMANAGED)?;
        if let Some(action) = action {
            record(&mut tx, origin, Actor::STRANGER, action, id).await?;
        }
        tx.commit().await?;
        Ok(Registered { client, secret: None, management })
    }
}

const UNMANAGED: Error = Error::Unauthenticated("the registration access token is not valid for this client");

pub(super) fn described<'a>(
    id: &'a str,
    metadata: &'a Metadata,
    scope: Option<&'a [String]>,
) -> NewClient<'a> {
    NewClient {
        id,
        name: &metadata.name,
        uri: metadata.uri.as_deref(),
        redirect_uris: &metadata.redirect_uris,
        grant_types: &metadata.grant_types,
        scope,
        auth_method: &metadata.auth_method,
        secret: None,
        registration: None,
        fresh_for: None,
    }
}

impl From<BadRegistration> for Refusal {
    fn from(bad: BadRegistration) -> Self {
        Self::new(bad.error, bad.description)
    }
}
