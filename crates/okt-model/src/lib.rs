//! The lowest layer: the types and words that every other crate uses.
//!
//! Typed ids, permissions, roles, and the one error type. It must not know async code, SQL, HTTP or files.
//! To add a word, give its noun a file here and re-export it below.

mod account;
mod answer;
mod audit;
mod blob;
mod bundle;
mod comparison;
mod concept;
mod curation;
mod error;
mod export;
mod fact;
mod hash;
mod id;
mod investigation;
mod job;
mod locator;
mod mark;
mod money;
mod oauth;
mod permission;
mod promptset;
mod registry;
mod report;
mod repository;
mod role;
mod search;
mod source;
mod subject;
mod text;
mod usage;
mod webhook;

pub use account::{ApiKey, Email, Session, User};
pub use answer::{
    ASK_VERSION, Answer, AnswerCosts, AnswerEvent, AnswerFilters, AnswerMode, AnswerQuestion, AnswerSentence,
    AnswerStatus, CheckMethod, Cited, Conversation, Coverage, DisagreeingFact, DropReason, DroppedSentence,
    Evidence, EvidenceChange, EvidenceChanges, EvidenceKind, EvidenceSource, EvidenceVia, Feedback,
    FeedbackVerdict, NamedConcept, Verdict, WhyExtractive,
};
pub use audit::{AuditEntry, AuditFilter, NewAuditEntry};
pub use blob::{Blob, BlobHash};
pub use bundle::{ExportGraph, ImportGraph, RegistryGraph};
pub use comparison::{
    CheckContradictions, CleanupFacts, Contradiction, ContradictionFoundBy, ContradictionMark,
    ContradictionSide, ContradictionState, DeduplicateFacts, EmbedFacts, EmbeddingSpace, FoundContradiction,
    MergedBy, SideSource, SpaceKind, SpaceState, TextOfFact,
};
pub use concept::{
    Alias, AliasBy, CATCH_ALL_CONTEXT, CONCEPT_MODEL, Concept, ConceptContext, ConceptExtraction,
    ConceptFilter, ConceptMergedBy, ConceptSource, DateKind, DatedFact, EmbedConcepts, ExtractConcepts,
    FoundBy, MAX_WORD_KEY, NewConcept, NewConceptMerge, NoPath, RefineConcepts, RefreshConceptRelations,
    Relation, RelationBands, Strength, SummarizeConcepts, SynthesizeConcept, TextMethod, name_key, word_key,
    word_keys,
};
pub use curation::{
    CuratedAlias, CuratedConcept, CuratedContradiction, CuratedFact, CuratedLink, CuratedState,
    CurationAction, CurationDetails, CurationEffects, CurationStep, Decided, Renamed,
};
pub use error::{Cause, Error, FieldError, Result};
pub use export::{
    CitationFormat, ExportedConcept, ExportedFact, ExportedLink, ExportedRelation, GraphFormat,
    QuotedSentence, ReportFormat,
};
pub use fact::{
    ChunkFailure, Difference, EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, EXTRACTIVE_MODEL, Extraction, Fact,
    FactConcept, FactFilter, FactGroup, FactKind, FactSource, FactStatus, NewFact, NoFacts, RegistryOrigin,
};
pub use hash::{ContentHash, NotAHash, content_hash};
pub use id::{
    AnswerId, ApiKeyId, AuditId, AuthorizationId, CallId, ClientNumber, ConceptId, ConversationId,
    CurationId, DeliveryId, FactId, GrantId, ImageId, InvestigationId, InvitationId, JobId, ReportId,
    RepositoryId, SessionId, SourceId, SummaryId, TokenId, UserId, WebhookId,
};
pub use investigation::{
    Investigation, InvestigationConcept, InvestigationProgress, MOST_INVESTIGATION_SOURCES,
};
pub use job::{Cost, Failure, Job, JobFilter, JobState, NewJob, Payload, Progress, Waiting};
pub use locator::{Locator, ResourceType};
pub use mark::{MarkKind, MarkOrigin, MarkedSources, SourceMark};
pub use money::{BudgetOf, Money, SpendingLimits};
pub use oauth::{OAuthClient, OAuthGrant, Scope, UnknownScope};
pub use permission::{Action, Object, Permission, PermissionSet};
pub use promptset::StoredPromptset;
pub use registry::{ContributeSource, ImportKind, ImportOrigin, PullAllFromRegistry, Revoked, Trust};
pub use report::{
    AnnotateReport, Annotation, ChangeCause, CheckReports, MOST_REPORT_SENTENCES, POSTURE_MODEL, Posture,
    Report, ReportChange, ReportCounts, ReportSentence, ReportStatus, SentenceState,
};
pub use repository::{
    AskSettings, CleanupRepository, Context, Counts, Invitation, MOST_CONTEXTS, Member, MigrateContext,
    PushLevel, Repository, RepositorySettings, Slug, Stages, Tier, UnmappedContexts,
};
pub use role::{Domain, Role};
pub use search::{
    EmbedPassages, FoundThrough, IndexSource, PASSAGES_OF_SOURCE, SearchMode, SearchType, UnitKind,
};
pub use source::{
    FetchAttempt, PartialText, Passage, RetrieveSource, Source, SourceDecomposition, SourceFailure,
    SourceFile, SourceFilter, SourceImage, SourcePage, SourceStage, SourceStatus, SourceText, TextFile,
    TextParts, parse_date, upload_url,
};
pub use subject::{Subject, SubjectKind};
pub use text::{checked_name, is_hidden, plain};
pub use usage::{CallOutcome, ModelCall, Operation, Savings, Usage, UsageFilter, UsageGroup};
pub use webhook::{
    DeliverWebhook, Delivery, DeliveryAttempt, DeliveryState, WEBHOOK_ATTEMPTS, WEBHOOK_TEST, Webhook,
    WebhookDisabled, WebhookEvent,
};
