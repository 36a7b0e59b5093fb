//! Your password, and where you are signed in.

use chrono::{DateTime, Utc};
use okt_model::Session;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The current password and the new one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The current password.
    #[schema(format = Password, max_length = 256)]
    pub current: String,
    /// The new password, 8 to 256 characters.
    #[schema(format = Password, min_length = 8, max_length = 256)]
    pub new: String,
}

/// A session of yours.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// The last use, to five minutes.
    pub last_used_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// Whether this is the session of the request.
    pub current: bool,
    /// Where you signed in from.
    pub address: Option<String>,
    /// The `User-Agent` header of the sign-in.
    pub user_agent: Option<String>,
}

impl From<(Session, bool)> for SessionView {
    fn from((session, current): (Session, bool)) -> Self {
        Self {
            id: session.id.uuid(),
            created_at: session.created_at,
            last_used_at: session.last_used_at,
            expires_at: session.expires_at,
            current,
            address: session.address,
            user_agent: session.agent,
        }
    }
}
