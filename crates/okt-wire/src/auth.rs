//! Registering, signing in and out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::users::UserView;

/// An account to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    #[schema(example = "ada@example.org", max_length = 254)]
    pub email: String,
    /// 8 to 256 characters.
    #[schema(format = Password, min_length = 8, max_length = 256)]
    pub password: String,
    #[serde(default)]
    #[schema(max_length = 200, example = "Ada Lovelace")]
    pub name: String,
    /// For the first account of an installation, from another machine or through a proxy: the code that the service
    /// wrote to its log when it started.
    #[schema(format = Password)]
    pub setup_code: Option<String>,
    /// For browsers: the refresh token comes as a cookie and not in the body.
    #[serde(default)]
    pub cookie: bool,
    /// The secret of an invitation: the account is a member of its repository from the start, and there is none when the
    /// invitation is not valid.
    pub invitation: Option<String>,
}

/// The credentials of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    #[schema(example = "ada@example.org")]
    pub email: String,
    #[schema(format = Password)]
    pub password: String,
    /// For browsers: the refresh token comes as a cookie and not in the body.
    #[serde(default)]
    pub cookie: bool,
}

/// The refresh token of a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// May be left out when it comes as a cookie.
    #[schema(example = "oktr_8Qm2…")]
    pub refresh_token: Option<String>,
}

/// A new session.
#[derive(Serialize, ToSchema)]
#[schema(as = SignedIn)]
pub struct SignedInView {
    pub user: UserView,
    /// For `Authorization: Bearer`.
    #[schema(example = "eyJhbGciOiJIUzI1NiJ9.eyJ…")]
    pub token: String,
    /// Absent when it was sent as a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "oktr_8Qm2…")]
    pub refresh_token: Option<String>,
    /// Seconds for which `token` works.
    #[schema(example = 86400)]
    pub expires_in: u64,
}

/// The next tokens of a session.
#[derive(Serialize, ToSchema)]
#[schema(as = Tokens)]
pub struct TokensView {
    /// For `Authorization: Bearer`.
    #[schema(example = "eyJhbGciOiJIUzI1NiJ9.eyJ…")]
    pub token: String,
    /// Absent when it was sent as a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "oktr_8Qm2…")]
    pub refresh_token: Option<String>,
    /// Seconds for which `token` works.
    #[schema(example = 86400)]
    pub expires_in: u64,
}
