//! Typed ids. UUIDv7, so that rows written together lie together in an index.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Each id is a type of its own, so that none can stand where another is asked for.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Mints a new id.
            #[expect(clippy::disallowed_methods, reason = "the one place that mints ids")]
            pub fn mint() -> Self {
                Self(Uuid::now_v7())
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// An answer to a question.
    AnswerId,
    /// A personal API key; its number, not its secret.
    ApiKeyId,
    /// An entry of the audit.
    AuditId,
    /// A request for authorization that a person has been asked to decide on.
    AuthorizationId,
    /// A call of a model.
    CallId,
    /// The number in the id of an OAuth client that registered itself.
    ClientNumber,
    /// What facts speak of.
    ConceptId,
    /// Questions that follow on each other.
    ConversationId,
    /// A step of curation.
    CurationId,
    /// An event that is told to a webhook.
    DeliveryId,
    /// A fact.
    FactId,
    /// What a person gave to an OAuth client, and the family of tokens that came of it.
    GrantId,
    /// An image of a source.
    ImageId,
    /// An investigation.
    InvestigationId,
    /// An invitation to a repository; its number, not its secret.
    InvitationId,
    /// A background job.
    JobId,
    /// A report.
    ReportId,
    /// A repository: the boundary between tenants.
    RepositoryId,
    /// A login, and the family of refresh tokens that keep it alive.
    SessionId,
    /// A source.
    SourceId,
    /// A slice of what is known of a concept.
    SummaryId,
    /// One signed token (its `jti`).
    TokenId,
    /// A person's account.
    UserId,
    /// A webhook.
    WebhookId,
}
