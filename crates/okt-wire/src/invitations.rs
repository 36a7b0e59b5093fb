//! Invitations to a repository.

use chrono::{DateTime, Utc};
use okt_model::Invitation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Who is invited, and to which role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    /// Whom you mean. It is shown in the list and looked up nowhere: whether there is an account with this address makes no
    /// difference.
    #[schema(example = "ada@example.org", max_length = 254)]
    pub email: String,
    /// `repoadmin`, `editor`, `curator` or `viewer`.
    #[schema(example = "viewer")]
    pub role: String,
}

/// An invitation to join a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationView {
    pub id: Uuid,
    #[schema(example = "ada@example.org")]
    pub email: String,
    #[schema(example = "viewer")]
    pub role: &'static str,
    pub invited_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// An invitation with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct CreatedInvitation {
    #[serde(flatten)]
    pub invitation: InvitationView,
    /// The secret for the invited person. It lets its bearer join once.
    #[schema(example = "okti_…")]
    pub secret: String,
    /// The secret as a link. Browsers do not send the part after the `#`.
    #[schema(example = "https://okt.example.org/invite#okti_…")]
    pub link: String,
}

/// An invitation to be accepted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The part of the link after the `#`.
    #[schema(example = "okti_…")]
    pub secret: String,
}

/// What you have joined.
#[derive(Serialize, ToSchema)]
pub struct JoinedView {
    pub repository_id: Uuid,
    #[schema(example = "Bees")]
    pub name: String,
    #[schema(example = "bees")]
    pub slug: String,
    /// Your role in the repository.
    #[schema(example = "viewer")]
    pub role: &'static str,
}

impl From<Invitation> for InvitationView {
    fn from(invitation: Invitation) -> Self {
        Self {
            id: invitation.id.uuid(),
            email: invitation.email,
            role: invitation.role.as_str(),
            invited_by: invitation.invited_by.uuid(),
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
        }
    }
}
