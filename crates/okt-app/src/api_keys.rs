//! Personal API keys.

use std::time::Duration;

use okt_auth::permissions::RepositoryRead;
use okt_auth::{Caller, Needed as _, Refused, opaque};
use okt_config::Secret;
use okt_model::{ApiKey, ApiKeyId, Domain, Error, Permission, RepositoryId, Result, checked_name};
use okt_store::api_keys::{self, NewKey};

use crate::accounts::NAME_LIMIT;
use crate::audit::{Actor, record, record_in};
use crate::{App, Origin};

/// In days. A longer life is no expiry by another name.
const A_CENTURY: u64 = 36_500;

/// What a new key should be.
pub struct KeyRequest {
    pub name: String,
    pub permissions: Vec<Permission>,
    pub repository: Option<RepositoryId>,
    pub expires_in_days: Option<u32>,
}

impl App {
    /// Makes a key; its secret is told here and never again.
    pub async fn create_api_key(
        &self,
        origin: &Origin,
        caller: &Caller,
        request: KeyRequest,
    ) -> Result<(ApiKey, Secret)> {
        let config = &self.config().api_keys;
        let name = checked_name("name", &request.name, 1, NAME_LIMIT)?;
        if request.permissions.is_empty() {
            return Err(Error::invalid("permissions", "must name at least one permission"));
        }
        if let Some(id) = request.repository {
            // One that the caller can't see is answered like one that is not there.
            let seen =
                caller.decide(Domain::Repository(id), RepositoryRead::PERMISSION) != Err(Refused::Invisible);
            if !seen || self.auth().locate(&id.to_string()).await?.is_none() {
                return Err(Error::invalid("repository_id", "there is no such repository"));
            }
        }
        let expires_in = self.key_lifetime(request.expires_in_days)?;
        let mut permissions: Vec<String> = request.permissions.iter().map(ToString::to_string).collect();
        permissions.sort();
        permissions.dedup();

        let (token, hash) = opaque::mint(opaque::Prefix::ApiKey)?;
        let key = NewKey {
            id: ApiKeyId::mint(),
            user: caller.user(),
            name: &name,
            prefix: &opaque::display_prefix(token.expose()),
            hash: hash.as_bytes(),
            permissions: &permissions,
            repository: request.repository,
            expires_in,
        };
        let cap = if config.max_per_user == 0 { 20 } else { config.max_per_user };
        let mut tx = self.databases().begin_system().await?;
        let Some(key) = api_keys::insert(&mut tx, &key, i64::from(cap)).await? else {
            return Err(Error::Conflict("the user has the maximum number of API keys; revoke one first"));
        };
        let object = key.id.to_string();
        let actor = Actor::caller(caller);
        record_in(&mut tx, origin, actor, "api_key.created", &object, request.repository).await?;
        tx.commit().await?;
        Ok((key, token))
    }

    pub async fn list_api_keys(
        &self,
        caller: &Caller,
        after: Option<ApiKeyId>,
        limit: i64,
    ) -> Result<Vec<ApiKey>> {
        Ok(api_keys::list(&mut *self.databases().acquire_system().await?, caller.user(), after, limit)
            .await?)
    }

    pub async fn revoke_api_key(&self, origin: &Origin, caller: &Caller, id: ApiKeyId) -> Result<()> {
        let mut tx = self.databases().begin_system().await?;
        if !api_keys::revoke(&mut tx, caller.user(), id).await? {
            return Err(Error::NotFound("API key"));
        }
        record(&mut tx, origin, Actor::caller(caller), "api_key.revoked", &id.to_string()).await?;
        Ok(tx.commit().await?)
    }

    /// `None` is no expiry, where nothing bounds it.
    fn key_lifetime(&self, asked: Option<u32>) -> Result<Option<Duration>> {
        let config = &self.config().api_keys;
        if asked == Some(0) {
            return Err(Error::invalid("expires_in_days", "must be at least 1"));
        }
        let cap = Some(config.max_ttl.duration()).filter(|cap| !cap.is_zero());
        let days = match asked.unwrap_or(config.default_ttl) {
            0 => return Ok(cap),
            days => u64::from(days),
        };
        let most = cap.map_or(A_CENTURY, |cap| (cap.as_secs() / 86_400).min(A_CENTURY));
        if days > most {
            return Err(Error::invalid("expires_in_days", format!("must be at most {most}")));
        }
        Ok(Some(Duration::from_hours(24 * days)))
    }
}
