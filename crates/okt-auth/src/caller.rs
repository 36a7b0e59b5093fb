//! From a bearer text to somebody who may do things.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use okt_config::{Config, Secret};
use okt_model::{
    ApiKeyId, Domain, GrantId, Permission, PermissionSet, RepositoryId, Result, Role, Scope, SessionId,
    TokenId, UserId,
};
use okt_store::repositories::{self, Located};
use okt_store::{Databases, api_keys, oauth_grants, roles, sessions};
use uuid::Uuid;

use crate::grants::{Grants, Narrow, Refused};
use crate::jwt::{self, NewAccess, Tokens};
use crate::opaque::{self, Prefix};
use crate::password::Passwords;
use crate::permissions::{Needed as _, RepositoryRead};

/// How many role assignments a process remembers, and for how long without use. Nothing depends on it but speed: what
/// is remembered is only ever used for the very version of the roles that the credential was looked up with.
const REMEMBERED: u64 = 200_000;
const REMEMBERED_FOR: Duration = Duration::from_mins(10);

/// For how long a process remembers where a repository lives. Whoever moves one waits for longer than this before
/// anything is written at the new place, so nobody reads what is old.
pub const LOCATED_FOR: Duration = Duration::from_secs(1);
const LOCATED: u64 = 100_000;

/// Tells who is calling.
pub struct Auth {
    databases: Databases,
    passwords: Passwords,
    tokens: Tokens,
    token_ttl: Duration,
    users_may_create_repositories: bool,
    rights: Cache<UserId, (Uuid, Arc<Rights>)>,
    /// By id or slug, as it stands in an address.
    located: Cache<String, Located>,
}

/// The roles of a user, and what they add up to.
struct Rights {
    assignments: Vec<(Domain, Role)>,
    grants: Grants,
}

/// Somebody with a valid credential.
#[derive(Clone)]
pub struct Caller {
    user: UserId,
    credential: Credential,
    rights: Arc<Rights>,
    narrow: Option<Arc<Narrow>>,
    /// Whether the credential is for MCP too.
    reaches_mcp: bool,
}

/// What they came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    Session(SessionId),
    ApiKey(ApiKeyId),
    /// The access token of a client that the user let in.
    Grant(GrantId),
}

/// Which repositories somebody may know of.
pub enum Visible {
    All,
    /// Newest first.
    These(Vec<RepositoryId>),
}

impl Auth {
    /// `secret` is the service's signing secret.
    pub fn new(config: &Config, databases: Databases, secret: &[u8]) -> Self {
        let previous = &config.auth.jwt_secret_previous;
        let previous = (!previous.is_empty()).then(|| previous.expose().as_bytes());
        Self {
            databases,
            passwords: Passwords::new(config.auth.password_memory_kib, config.auth.password_iterations),
            tokens: Tokens::new(secret, previous, config.oauth.issuer.as_ref()),
            token_ttl: config.auth.token_ttl.duration(),
            users_may_create_repositories: config.rbac.users_may_create_repositories,
            rights: Cache::builder()
                .max_capacity(REMEMBERED)
                .weigher(|_, (_, rights): &(Uuid, Arc<Rights>)| {
                    u32::try_from(rights.assignments.len() + 1).unwrap_or(u32::MAX)
                })
                .time_to_idle(REMEMBERED_FOR)
                .build(),
            located: Cache::builder().max_capacity(LOCATED).time_to_live(LOCATED_FOR).build(),
        }
    }

    pub const fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// An access token for the session.
    pub fn sign_session(&self, user: UserId, session: SessionId) -> Secret {
        Secret::from(self.tokens.sign_session(user, session, TokenId::mint(), now(), self.token_ttl))
    }

    /// Who presents this; `None` when it is no valid credential. One statement, a second one when the user's roles have
    /// changed since they were last looked at here, and one every few minutes to note that a session is in use.
    pub async fn authenticate(&self, bearer: &str) -> Result<Option<Caller>> {
        if let Some(hash) = opaque::parse(Prefix::ApiKey, bearer) {
            return self.by_api_key(hash.as_bytes()).await;
        }
        let Some(claims) = self.tokens.verify_session(bearer, now()) else { return Ok(None) };
        let mut conn = self.databases.acquire_system().await?;
        let live = sessions::find_live(&mut conn, claims.sid).await?;
        let Some(live) = live.filter(|live| live.user == claims.sub) else {
            return Ok(None);
        };
        if live.unnoted {
            sessions::note_use(&mut conn, claims.sid).await?;
        }
        drop(conn);
        let rights = self.rights_of(live.user, live.roles_version).await?;
        Ok(Some(Caller {
            user: live.user,
            credential: Credential::Session(claims.sid),
            rights,
            narrow: None,
            reaches_mcp: false,
        }))
    }

    /// Whether it has the form of a key or a token of ours, valid or not. Anybody can write one.
    pub fn is_well_formed(&self, bearer: &str) -> bool {
        opaque::parse(Prefix::ApiKey, bearer).is_some() || jwt::is_well_formed(bearer)
    }

    /// Who presents this access token, that `issuer` gave out for `audience`; `None` when it is none. What it may do is
    /// what its scope, the grant and the user's roles have in common right now.
    pub async fn authenticate_client(
        &self,
        bearer: &str,
        issuer: &str,
        audience: &str,
    ) -> Result<Option<Caller>> {
        let Some(claims) = self.tokens.verify_access(bearer, issuer, audience, now()) else {
            return Ok(None);
        };
        let mut conn = self.databases.acquire_system().await?;
        let live = oauth_grants::find_live(&mut conn, claims.grant).await?;
        drop(conn);
        let live = live.filter(|live| live.user == claims.sub && live.client_id == claims.client_id);
        let Some(live) = live else { return Ok(None) };
        // A word that no release of ours knows any more grants nothing.
        let scope = Scope::parse(&claims.scope).unwrap_or_default();
        let (permissions, reaches_mcp) = (scope.permissions(), scope.reaches_mcp());
        let repositories = live.repositories.map(|ids| ids.into_iter().collect());
        let rights = self.rights_of(live.user, live.roles_version).await?;
        let narrow = Some(Arc::new(Narrow { permissions, repositories }));
        let credential = Credential::Grant(claims.grant);
        Ok(Some(Caller { user: live.user, credential, rights, narrow, reaches_mcp }))
    }

    /// The access token of a grant.
    pub fn sign_access(&self, new: &NewAccess<'_>, ttl: Duration) -> Secret {
        Secret::from(self.tokens.sign_access(new, now(), ttl))
    }

    /// Which grant an access token of `issuer` belongs to, for whatever audience and however old.
    pub fn grant_of(&self, bearer: &str, issuer: &str) -> Option<GrantId> {
        self.tokens.read_access(bearer, issuer).map(|claims| claims.grant)
    }

    /// Which repository is meant by an id or a slug, and where it lives. What was found is remembered for a moment; that
    /// there is none is not.
    pub async fn locate(&self, named: &str) -> Result<Option<Located>> {
        if let Some(located) = self.located.get(named) {
            return Ok(Some(located));
        }
        let mut conn = self.databases.acquire_system().await?;
        let located = repositories::locate(&mut conn, named).await?;
        if let Some(located) = &located {
            self.located.insert(named.to_owned(), located.clone());
        }
        Ok(located)
    }

    /// To be called when a repository is not what it was any more, so that at least this process knows at once.
    pub fn forget_located(&self, id: RepositoryId) {
        let names = self.located.iter().filter(|(_, located)| located.id == id);
        for (name, _) in names.collect::<Vec<_>>() {
            self.located.invalidate(&*name);
        }
    }

    async fn by_api_key(&self, hash: &[u8; 32]) -> Result<Option<Caller>> {
        let mut conn = self.databases.acquire_system().await?;
        let found = api_keys::find_live(&mut conn, hash).await?;
        drop(conn);
        let Some(key) = found else { return Ok(None) };
        // A permission that no release of ours knows any more grants nothing.
        let permissions = key.permissions.iter().filter_map(|text| text.parse::<Permission>().ok());
        let narrow = Narrow {
            permissions: permissions.collect(),
            repositories: key.repository.map(|repository| [repository].into()),
        };
        let rights = self.rights_of(key.user, key.roles_version).await?;
        let (credential, narrow) = (Credential::ApiKey(key.id), Some(Arc::new(narrow)));
        Ok(Some(Caller { user: key.user, credential, rights, narrow, reaches_mcp: true }))
    }

    async fn rights_of(&self, user: UserId, version: Uuid) -> Result<Arc<Rights>> {
        if let Some((remembered, rights)) = self.rights.get(&user)
            && remembered == version
        {
            return Ok(rights);
        }
        let mut conn = self.databases.acquire_system().await?;
        let assignments = roles::list_of(&mut conn, user).await?;
        let grants = Grants::new(assignments.iter().copied(), self.users_may_create_repositories);
        let rights = Arc::new(Rights { assignments, grants });
        // Should the roles have changed again in between, these are newer than the version says; the next look-up
        // brings the newer version and asks once more.
        self.rights.insert(user, (version, Arc::clone(&rights)));
        Ok(rights)
    }
}

impl Caller {
    pub const fn user(&self) -> UserId {
        self.user
    }

    pub const fn credential(&self) -> Credential {
        self.credential
    }

    /// What the roles add up to with this credential.
    pub fn permissions(&self, domain: Domain) -> PermissionSet {
        match &self.narrow {
            Some(narrow) => self.rights.grants.narrowed(narrow, domain),
            None => self.rights.grants.permissions(domain),
        }
    }

    pub fn may(&self, domain: Domain, permission: Permission) -> bool {
        self.decide(domain, permission).is_ok()
    }

    pub fn decide(&self, domain: Domain, permission: Permission) -> Result<(), Refused> {
        self.rights.grants.decide(domain, permission, self.narrow.as_deref())
    }

    /// Whether the credential is for this at all, whatever its owner may do.
    pub fn was_given(&self, permission: Permission) -> bool {
        self.narrow.as_ref().is_none_or(|narrow| narrow.permissions.contains(permission))
    }

    /// Whether the owner of the credential may do this, whatever the credential is for: in this domain, or anywhere.
    pub fn owner_may(&self, domain: Option<Domain>, permission: Permission) -> bool {
        let grants = &self.rights.grants;
        let may = |domain| grants.permissions(domain).contains(permission);
        domain.map_or_else(|| self.rights.assignments.iter().any(|(domain, _)| may(*domain)), may)
    }

    /// Whether they may do everything; a key or a client never may.
    pub fn is_sysadmin(&self) -> bool {
        self.narrow.is_none() && self.roles(Domain::System).contains(&Role::Sysadmin)
    }

    /// Whether the credential is for MCP: a key is, a client's token if its scope says so, and a person's session is not.
    pub const fn reaches_mcp(&self) -> bool {
        self.reaches_mcp
    }

    /// The roles of the user in a domain; a key or a client has none, only permissions.
    pub fn roles(&self, domain: Domain) -> Vec<Role> {
        if self.narrow.is_some() {
            return Vec::new();
        }
        self.rights.assignments.iter().filter(|(of, _)| *of == domain).map(|(_, role)| *role).collect()
    }

    /// Where the credential may do something, with the roles there.
    pub fn domains(&self) -> Vec<(Domain, Vec<Role>)> {
        let mut domains: Vec<(Domain, Vec<Role>)> = Vec::new();
        // Sorted by domain, as they are read.
        for (domain, role) in &self.rights.assignments {
            match domains.last_mut() {
                Some((last, roles)) if last == domain => roles.push(*role),
                _ => domains.push((*domain, vec![*role])),
            }
        }
        if let Some(narrow) = &self.narrow {
            // Roles are the owner's. And a sysadmin needs none in a repository that a key of theirs is bound to.
            for (_, roles) in &mut domains {
                roles.clear();
            }
            let bound = narrow.repositories.iter().flatten().map(|id| Domain::Repository(*id));
            for domain in bound {
                if domains.iter().all(|(known, _)| *known != domain) {
                    domains.push((domain, Vec::new()));
                }
            }
        }
        domains
    }

    /// Which repositories the credential may read.
    pub fn visible(&self) -> Visible {
        let bound = self.narrow.as_ref().and_then(|narrow| narrow.repositories.as_ref());
        let given = self.was_given(RepositoryRead::PERMISSION);
        let sysadmin = self.rights.assignments.contains(&(Domain::System, Role::Sysadmin));
        if sysadmin && given && bound.is_none() {
            return Visible::All;
        }
        let held = self.rights.assignments.iter().filter_map(|(domain, _)| match domain {
            Domain::Repository(id) => Some(*id),
            Domain::System => None,
        });
        // A sysadmin needs no role in a repository that their key is bound to.
        let mut ids: Vec<RepositoryId> = held.chain(bound.into_iter().flatten().copied()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        ids.retain(|id| self.may(Domain::Repository(*id), RepositoryRead::PERMISSION));
        Visible::These(ids)
    }
}

/// Seconds since 1970 by this machine's clock; tokens are verified with some leeway for the others'.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of tokens; what has to be exact is timed by the database"
)]
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

#[cfg(test)]
impl Caller {
    /// Somebody with a session and one role.
    pub(crate) fn with_role(domain: Domain, role: Role) -> Self {
        let assignments = vec![(domain, role)];
        let grants = Grants::new(assignments.iter().copied(), true);
        let rights = Arc::new(Rights { assignments, grants });
        Self {
            user: UserId::mint(),
            credential: Credential::Session(SessionId::mint()),
            rights,
            narrow: None,
            reaches_mcp: false,
        }
    }
}
