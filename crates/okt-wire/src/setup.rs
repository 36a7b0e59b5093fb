//! The state of the installation, for front ends that open it.

use serde::Serialize;
use utoipa::ToSchema;

/// What a client needs to know before a user signs in.
#[derive(Serialize, ToSchema)]
#[schema(as = Setup)]
pub struct SetupView {
    /// There are no accounts yet; the first one becomes sysadmin.
    pub needs_admin: bool,
    /// Who may register: all users (`open`), users with an invitation (`invite`), or no users (`closed`).
    #[schema(example = "open")]
    pub registration: &'static str,
    /// `development` or `production`.
    #[schema(example = "production")]
    pub mode: &'static str,
    /// Whether its public address (`oauth.issuer`) is https.
    pub https: bool,
    #[schema(example = "0.1.0")]
    pub version: &'static str,
}
