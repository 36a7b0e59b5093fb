//! The ground floor: the words every other crate speaks.
//!
//! Typed ids, permissions, roles, and the one error type. It must not know async code, SQL, HTTP or files.
//! To add a word, give its noun a file here and re-export it below.

mod account;
mod audit;
mod blob;
mod comparison;
mod error;
mod fact;
mod hash;
mod id;
mod job;
mod locator;
mod oauth;
mod permission;
mod promptset;
mod repository;
mod role;
mod source;
mod usage;

pub use account::{ApiKey, Email, User};
pub use audit::{AuditEntry, AuditFilter, NewAuditEntry};
pub use blob::{Blob, BlobHash};
pub use comparison::{
    CleanupFacts, Contradiction, DeduplicateFacts, EmbedFacts, EmbeddingSpace, SpaceState, TextOfFact,
};
pub use error::{Cause, Error, FieldError, Result};
pub use fact::{
    ChunkFailure, Difference, EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, EXTRACTIVE_MODEL, Extraction, Fact,
    FactConcept, FactFilter, FactKind, FactSource, FactStatus, NewFact,
};
pub use hash::{ContentHash, NotAHash, content_hash};
pub use id::{
    ApiKeyId, AuditId, AuthorizationId, CallId, ClientNumber, ConceptId, FactId, GrantId, ImageId, JobId,
    RepositoryId, SessionId, SourceId, TokenId, UserId,
};
pub use job::{Cost, Failure, Job, JobFilter, JobState, NewJob, Payload, Progress, Subject, Waiting};
pub use locator::{Locator, ResourceType};
pub use oauth::{OAuthClient, OAuthGrant, Scope, UnknownScope};
pub use permission::{Action, Object, Permission, PermissionSet};
pub use promptset::StoredPromptset;
pub use repository::{
    CleanupRepository, Context, Counts, Member, MigrateContext, PushLevel, Repository, RepositorySettings,
    Slug, Stages, Tier,
};
pub use role::{Domain, Role};
pub use source::{
    FetchAttempt, RetrieveSource, Source, SourceDecomposition, SourceFailure, SourceFile, SourceFilter,
    SourceImage, SourceStage, SourceStatus, SourceText, parse_date, upload_url,
};
pub use usage::{CallOutcome, ModelCall, Operation, Usage, UsageFilter, UsageGroup};
