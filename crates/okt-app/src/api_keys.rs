//! Personal API keys.

use okt_auth::{Caller, Decision, opaque};
use okt_config::Secret;
use okt_model::{Action, ApiKey, ApiKeyId, Domain, Error, Object, Permission, RepositoryId, Result};
use okt_store::api_keys::{self, NewKey};

use crate::audit::{Actor, record, record_in};
use crate::{App, Origin};

const SEE: Permission = Permission::new(Object::Repository, Action::Read);

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
        let name = crate::accounts::checked_name(&request.name)?;
        if name.is_empty() {
            return Err(Error::invalid("name", "must not be empty"));
        }
        if request.permissions.is_empty() {
            return Err(Error::invalid("permissions", "must name at least one permission"));
        }
        if let Some(id) = request.repository {
            // One that the caller can't see is answered like one that is not there.
            let seen = caller.decide(Domain::Repository(id), SEE) != Decision::Invisible;
            if !seen || self.auth().locate(&id.to_string()).await?.is_none() {
                return Err(Error::invalid("repository_id", "there is no such repository"));
            }
        }
        let days = self.key_lifetime(request.expires_in_days)?;
        let mut permissions: Vec<String> = request.permissions.iter().map(ToString::to_string).collect();
        permissions.sort();
        permissions.dedup();

        let (token, hash) = opaque::mint(opaque::Prefix::ApiKey)?;
        let key = NewKey {
            id: ApiKeyId::mint(),
            user: caller.user(),
            name,
            prefix: &opaque::display_prefix(token.expose()),
            hash: hash.as_bytes(),
            permissions: &permissions,
            repository: request.repository,
            expires_in_days: days,
        };
        let cap = if config.max_per_user == 0 { 20 } else { config.max_per_user };
        let mut tx = self.databases().begin_system().await?;
        let Some(key) = api_keys::insert(&mut tx, &key, i64::from(cap)).await? else {
            return Err(Error::Conflict("there are as many API keys as a user may have; revoke one first"));
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
        api_keys::list(&mut *self.databases().acquire_system().await?, caller.user(), after, limit).await
    }

    pub async fn revoke_api_key(&self, origin: &Origin, caller: &Caller, id: ApiKeyId) -> Result<()> {
        let mut tx = self.databases().begin_system().await?;
        if !api_keys::revoke(&mut tx, caller.user(), id).await? {
            return Err(Error::NotFound("API key"));
        }
        record(&mut tx, origin, Actor::caller(caller), "api_key.revoked", &id.to_string()).await?;
        tx.commit().await
    }

    /// In days; `None` is no expiry.
    fn key_lifetime(&self, asked: Option<u32>) -> Result<Option<i32>> {
        let config = &self.config().api_keys;
        let days = asked.unwrap_or(config.default_ttl);
        if asked == Some(0) {
            return Err(Error::invalid("expires_in_days", "must be at least 1"));
        }
        let cap = match config.max_ttl.duration().as_secs() {
            0 => A_CENTURY,
            seconds => (seconds / 86_400).min(A_CENTURY),
        };
        if u64::from(days) > cap {
            return Err(Error::invalid("expires_in_days", format!("must be at most {cap}")));
        }
        Ok((days > 0).then(|| i32::try_from(days).unwrap_or(i32::MAX)))
    }
}
