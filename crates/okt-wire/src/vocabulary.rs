//! The words that fields may hold: read, and listed in the document, from the one enum that knows them.

use okt_app::{ImageKind, SourceKind};
use okt_config::{ResolutionProvider, SearchProvider};
use okt_model::{Domain, Error, RepositoryId, words};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use uuid::Uuid;

words! {
    /// The order in which sources are listed, by the time they were added.
    SourceSort {
        Newest = "newest",
        Oldest = "oldest",
    }
}

words! {
    /// The order in which facts are listed.
    FactSort {
        Newest = "newest",
        SourceCount = "source_count",
    }
}

words! {
    /// The order in which concepts are listed.
    ConceptSort {
        FactCount = "fact_count",
        Name = "name",
    }
}

words! {
    /// The statuses that a request can give a fact.
    SettableFactStatus {
        Rejected = "rejected",
        Stable = "stable",
    }
}

words! {
    /// What became of an entry of a list of references.
    ImportOutcome {
        Added = "added",
        Existing = "existing",
        Skipped = "skipped",
        Invalid = "invalid",
    }
}

words! {
    /// What an estimate rests on.
    EstimateBasis {
        History = "history",
        RuleOfThumb = "rule_of_thumb",
    }
}

words! {
    /// What became of a sentence from one version of a text to another.
    SentenceChange {
        Same = "same",
        Added = "added",
        Removed = "removed",
    }
}

words! {
    /// What happens when a budget is used up.
    OnExceed {
        Pause = "pause",
    }
}

/// A word that a caller may write.
pub trait Word: Copy + 'static {
    const WORDS: &'static [Self];

    fn word(self) -> &'static str;
}

/// The word of a field, or which ones there are.
pub fn read<W: Word>(field: &'static str, text: &str) -> Result<W, Error> {
    W::WORDS.iter().copied().find(|word| word.word() == text).ok_or_else(|| {
        let all: Vec<_> = W::WORDS.iter().map(|word| word.word()).collect();
        Error::invalid(field, format!("must be one of {}", all.join(", ")))
    })
}

/// As [`read`], for a field that may be left out.
pub fn read_if_given<W: Word>(field: &'static str, text: Option<&str>) -> Result<Option<W>, Error> {
    text.map(|text| read(field, text)).transpose()
}

macro_rules! readable {
    ($($word:ty),+ $(,)?) => {$(
        impl Word for $word {
            const WORDS: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}

readable!(
    ConceptSort,
    FactSort,
    SourceSort,
    SettableFactStatus,
    OnExceed,
    okt_model::AnswerMode,
    okt_model::CitationFormat,
    okt_model::ReportFormat,
    okt_model::FactKind,
    okt_model::GraphFormat,
    okt_model::FactStatus,
    okt_model::FeedbackVerdict,
    okt_model::JobState,
    okt_model::ContradictionState,
    okt_model::DeliveryState,
    okt_model::MarkKind,
    okt_model::Posture,
    okt_model::Role,
    okt_model::SearchMode,
    okt_model::SearchType,
    okt_model::Trust,
    okt_model::SourceStatus,
    okt_model::UnmappedContexts,
    okt_model::UsageGroup,
    okt_model::WebhookEvent,
);

impl Word for SearchProvider {
    const WORDS: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for SourceKind {
    const WORDS: &'static [Self] = Self::READ;

    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// Names an enumeration of the document, its words, and the one that examples show.
macro_rules! enumerations {
    ($($(#[doc = $doc:literal])+ $name:ident = $words:expr $(, $example:literal)?;)+) => {
        $(
            $(#[doc = $doc])+
            pub struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let example: &[&str] = &[$($example)?];
                    enumeration(concat!($($doc),+), $words.collect(), example.first().copied())
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }
            }
        )+

        /// All of them, because the document of a parameter brings none along.
        pub fn all() -> Vec<(String, RefOr<Schema>)> {
            vec![$((stringify!($name).to_owned(), $name::schema())),+]
        }
    };
}

fn enumeration(description: &str, words: Vec<&'static str>, example: Option<&str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description.trim()))
        .enum_values(Some(words))
        .examples(example)
        .into()
}

macro_rules! all {
    ($word:ty) => {
        <$word>::ALL.iter().map(|word| word.as_str())
    };
}

/// The names under which fields and parameters refer to them.
pub mod schema {
    use std::borrow::Cow;

    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::Schema;
    use utoipa::{PartialSchema, ToSchema};

    use super::{enumeration, repository_roles};

    enumerations! {
        /// The status of a source.
        SourceStatus = all!(okt_model::SourceStatus), "processed";
        /// The stage at which a source failed.
        SourceStage = all!(okt_model::SourceStage), "fetch";
        /// The format of a source.
        SourceKind = super::SourceKind::READ.iter().map(|kind| kind.as_str()), "pdf";
        /// An image of the document, or a page of it as a picture.
        ImageKind = all!(super::ImageKind), "page";
        /// How a source was identified; `upload` for a file.
        ResourceType = all!(okt_model::ResourceType).chain(["upload"]), "url";
        /// The order in which sources are listed, by the time they were added.
        SourceSort = all!(super::SourceSort), "newest";
        /// The result for an entry of a list: `added`; `existing`: the repository had it; `skipped`: there is nothing to
        /// fetch it by; `invalid`: it can't be read.
        ImportOutcome = all!(super::ImportOutcome), "added";
        /// What became of a source after it was published.
        MarkKind = all!(okt_model::MarkKind), "retracted";
        /// Who says so: a person, a search provider or a list of retractions.
        MarkOrigin = all!(okt_model::MarkOrigin), "person";
        /// `history`: what the repository has seen of the model lately; `rule_of_thumb`: how much models read and write by
        /// and large.
        EstimateBasis = all!(super::EstimateBasis), "history";
        /// `model`: a model has written it; `extractive`: it is made of the facts that say most while it is read.
        TextMethod = all!(okt_model::TextMethod), "model";
        /// What became of a sentence from one version of a definition to another.
        SentenceChange = all!(super::SentenceChange), "same";
        /// `new`: not yet compared with other facts; `stable`: compared; `duplicate`: merged into a canonical fact; `rejected`: by
        /// a person.
        FactStatus = all!(okt_model::FactStatus), "stable";
        /// Whether a fact was read in a text or seen in an image.
        FactKind = all!(okt_model::FactKind), "text";
        /// The order in which facts are listed.
        FactSort = all!(super::FactSort), "newest";
        /// The order in which concepts are listed: those with the most facts first, or by name.
        ConceptSort = all!(super::ConceptSort), "fact_count";
        /// The format of a list of references.
        CitationFormat = all!(okt_model::CitationFormat), "bibtex";
        /// A format of a report: Markdown with footnotes, a page to read and print, or the sources that its claims rest on.
        ReportFormat = all!(okt_model::ReportFormat), "md";
        /// The format of an exported repository: linked data, a graph or a table.
        GraphFormat = all!(okt_model::GraphFormat), "jsonld";
        /// How a question is answered.
        SearchMode = all!(okt_model::SearchMode), "hybrid";
        /// What is looked for.
        SearchType = all!(okt_model::SearchType), "facts";
        /// How something was found.
        FoundThrough = all!(okt_model::FoundThrough), "lexical";
        /// How an answer is wanted, or was written.
        AnswerMode = all!(okt_model::AnswerMode), "model";
        /// Where an answer stands.
        AnswerStatus = all!(okt_model::AnswerStatus), "answered";
        /// Why no model has written an answer: `asked` for; none is set up; not permitted; the person's daily limit; the budget of the
        /// repository; the answer's own limit; the model failed.
        WhyExtractive = all!(okt_model::WhyExtractive), "no_model";
        /// How a sentence of an answer stands to what it cites.
        Verdict = all!(okt_model::Verdict), "supported";
        /// Who has checked a sentence.
        CheckMethod = all!(okt_model::CheckMethod), "rule";
        /// Why a sentence is not shown.
        DropReason = all!(okt_model::DropReason), "number";
        /// A fact, or a part of a source that none of the facts beside it quotes.
        EvidenceKind = all!(okt_model::EvidenceKind), "fact";
        /// What became of a fact or a passage that an answer cites.
        EvidenceChange = all!(okt_model::EvidenceChange), "rejected";
        /// What people say of answers.
        FeedbackVerdict = all!(okt_model::FeedbackVerdict), "right";
        /// Who gave a concept another name: rules, a model or a person.
        AliasBy = all!(okt_model::AliasBy), "model";
        /// How strongly two concepts belong together, by how many facts they share.
        Strength = all!(okt_model::Strength), "stable";
        /// `published`: when a source of the fact was published; `fetched`: when it was fetched, if none says so.
        DateKind = all!(okt_model::DateKind), "published";
        /// Why there is no path: `not_connected`: there is none; `not_within_limits`: none was found among as many concepts as
        /// are looked at.
        NoPath = all!(okt_model::NoPath);
        /// A status that a request can give a fact: `rejected`, or `stable` to restore a rejected fact or to undo the merge of a
        /// duplicate.
        SettableFactStatus = all!(super::SettableFactStatus), "rejected";
        /// How two facts differ; `judged` if a person undid their merge.
        Difference = all!(okt_model::Difference), "negation";
        /// How a fact stands to a sentence.
        Posture = all!(okt_model::Posture), "supports";
        /// How a fact stands to a sentence, as a person may say; `irrelevant`: they have nothing to do with each other.
        JudgedPosture = all!(okt_model::Posture).chain(["irrelevant"]), "supports";
        /// `pending`: nothing was checked yet; `annotating`: some sentences wait to be checked; `failed`: some could not be.
        ReportStatus = all!(okt_model::ReportStatus), "annotated";
        /// How a sentence stands. `contradicted` if any fact contradicts it; `waiting` until it was checked for the first time.
        SentenceStanding = all!(okt_model::SentenceState).chain(["waiting", "not_a_claim"]), "supported";
        /// Why a sentence stands otherwise: `checked` for the first time; a fact was added, removed or merged; the mark of a source
        /// was set or removed; a person judged; or it was judged anew, by another model.
        ChangeCause = all!(okt_model::ChangeCause), "fact_added";
        /// What people say of two facts that may contradict each other.
        ContradictionState = all!(okt_model::ContradictionState), "open";
        /// How it was found that two facts may contradict each other.
        ContradictionFoundBy = all!(okt_model::ContradictionFoundBy), "refused_merge";
        /// What a step of curation did.
        CurationAction = all!(okt_model::CurationAction), "merge";
        /// `completed`, `cancelled` and `discarded` are for good.
        JobState = all!(okt_model::JobState), "completed";
        /// What a job or a source waits for.
        Waiting = all!(okt_model::Waiting);
        /// What usage is summed up by.
        UsageGroup = all!(okt_model::UsageGroup), "day";
        /// A role: of the whole installation, or in a repository.
        Role = all!(okt_model::Role), "editor";
        /// A role in a repository.
        RepositoryRole = repository_roles(), "editor";
        /// What a permission is about.
        PermissionObject = all!(okt_model::Object), "source";
        /// What a permission allows.
        PermissionAction = all!(okt_model::Action), "read";
        /// The isolation that the owner of a repository chose.
        Tier = all!(okt_model::Tier), "shared";
        /// How much of a repository's knowledge goes to a registry: `facts`, or `concepts` as well.
        PushLevel = all!(okt_model::PushLevel), "concepts";
        /// Whose packages and bundles a repository takes from a registry.
        Trust = all!(okt_model::Trust), "anyone";
        /// In what form something came from elsewhere.
        ImportKind = all!(okt_model::ImportKind), "package";
        /// How requests to a registry are authenticated.
        AuthMode = ["none", "bearer", "hmac"].into_iter(), "bearer";
        /// What becomes of a concept whose context the repository does not have.
        UnmappedContexts = all!(okt_model::UnmappedContexts), "catch_all";
        /// What happens when a budget is used up: jobs wait until there is money again.
        OnExceed = all!(super::OnExceed), "pause";
        /// What a webhook can be told.
        WebhookEvent = all!(okt_model::WebhookEvent), "source.processed";
        /// Why a webhook is told nothing: the receiver answered 410 Gone; nothing could be delivered for three days; or a person
        /// disabled it.
        WebhookDisabledCode = all!(okt_model::WebhookDisabled), "failing";
        /// `waiting` for the first attempt or the next; `failed` if there will be none.
        DeliveryState = all!(okt_model::DeliveryState), "delivered";
        /// A provider that finds sources.
        SearchProvider = all!(super::SearchProvider), "academic";
        /// A provider that finds or fetches sources.
        Provider = all!(super::SearchProvider).chain(all!(super::ResolutionProvider)), "web";
    }
}

fn repository_roles() -> impl Iterator<Item = &'static str> {
    let anywhere = Domain::Repository(RepositoryId::from(Uuid::nil()));
    okt_model::Role::ALL.iter().filter(move |role| role.fits(anywhere)).map(|role| role.as_str())
}
