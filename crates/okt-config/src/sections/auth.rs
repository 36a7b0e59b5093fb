//! Who is who: tokens, keys, first accounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::period::Period;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Signs session and OAuth tokens; at least 32 bytes. There is no default: production refuses to start
    /// without one, development makes one and keeps it beside the configuration.
    pub jwt_secret: Secret,
    /// The previous signing secret, still accepted, so that a rotation ends no session. Secrets of webhooks that were made under it
    /// can be read as long as it is here: rotate them before it goes.
    pub jwt_secret_previous: Secret,
    /// Lifetime of a session's access token.
    #[schemars(extend("x-positive" = true))]
    pub token_ttl: Period,
    /// Lifetime of a session's refresh token.
    #[schemars(extend("x-positive" = true))]
    pub refresh_ttl: Period,
    /// Who may make an account: `open`: all users; `invite`: invited users; `closed`: no users. The
    /// first account of an empty installation can always be made by the user who becomes its sysadmin.
    pub registration: Registration,
    /// Memory in KiB that hashing a password takes (argon2id). A password that was hashed with other parameters is
    /// rehashed when its owner next signs in.
    #[schemars(range(min = 19456, max = 1_048_576))]
    pub password_memory_kib: u32,
    /// Number of argon2id iterations.
    #[schemars(range(min = 2, max = 20))]
    pub password_iterations: u32,
}

/// Who may make an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    Open,
    Invite,
    Closed,
}

impl Registration {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Invite => "invite",
            Self::Closed => "closed",
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// The public base address of this service. It may be empty: development then takes it from each request, and
    /// in production OAuth is off. When set, production wants https, unless its host is loopback.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub issuer: Option<Url>,
    /// Lifetime of an access token.
    #[schemars(extend("x-positive" = true))]
    pub access_token_ttl: Period,
    /// Lifetime of a refresh token.
    #[schemars(extend("x-positive" = true))]
    pub refresh_token_ttl: Period,
    /// Lifetime of an authorization code, which works once.
    #[schemars(extend("x-positive" = true))]
    pub auth_code_ttl: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiKeys {
    /// Active keys one user may have; 0 stands for the built-in 20.
    pub max_per_user: u32,
    /// Lifetime in days of a key created without one; 0 for as long as `max_ttl` allows.
    pub default_ttl: u32,
    /// Upper bound on any key's lifetime, also of one created without one; `0s` for none.
    pub max_ttl: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Rows older than this many days are deleted once a day.
    #[schemars(range(min = 1, max = 36500))]
    pub retention_days: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rbac {
    /// Whether every registered user may create repositories.
    pub users_may_create_repositories: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// Whether the first person to register becomes sysadmin. In production this counts only where a file or the
    /// environment sets it.
    pub auto_promote_first_user: bool,
    /// Code that the first user needs to become sysadmin from another machine, or through a proxy; at least 12
    /// characters. While it is empty, one is derived from `auth.jwt_secret` and written to the log at each start until
    /// an account exists.
    pub setup_code: Secret,
    /// Whether a sysadmin is created at the first start from the three keys that begin with this name. Skipped
    /// while one of them is empty.
    pub default_admin: bool,
    /// E-mail address of that sysadmin.
    #[schemars(schema_with = "format::email")]
    pub default_admin_email: String,
    /// Password of that sysadmin, 8 to 256 characters.
    pub default_admin_password: Secret,
    /// Name of that sysadmin.
    pub default_admin_display_name: String,
    /// Whether a starter repository is created at the first start.
    pub default_repository: bool,
}

impl Bootstrap {
    /// Whether the first start makes a sysadmin: it is told to, and all that it needs is there.
    pub fn seeds_admin(&self) -> bool {
        self.default_admin
            && !self.default_admin_email.is_empty()
            && !self.default_admin_password.is_empty()
            && !self.default_admin_display_name.is_empty()
    }
}
