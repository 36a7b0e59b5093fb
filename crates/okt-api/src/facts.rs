//! Facts: what the sources of a repository say.

use axum::extract::State;
use chrono::{DateTime, Utc};
use okt_app::SeenFact;
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{
    Action, ConceptId, Contradiction, Error, Fact, FactConcept, FactFilter, FactId, FactKind, FactStatus,
    ImageId, Object, Permission,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Api;
use crate::auth::Caught;
use crate::repositories::Repository;
use crate::sources::SourcePath;

pub(crate) const FACT_READ: Permission = Permission::new(Object::Fact, Action::Read);
pub(crate) const FACT_UPDATE: Permission = Permission::new(Object::Fact, Action::Update);
const MOST_CONCEPTS: usize = 20;

/// A statement that sources make.
#[derive(Serialize, ToSchema)]
#[schema(as = FactSummary)]
pub struct FactRow {
    id: Uuid,
    #[schema(example = "Honey bees tell each other where food is by a dance on the comb.")]
    text: String,
    /// SHA-256 of the text in the form in which facts are compared.
    content_hash: String,
    /// `text` or `image`.
    #[schema(example = "text")]
    kind: &'static str,
    /// `new`, `stable`, `duplicate`, `removed` or `rejected`.
    #[schema(example = "stable")]
    status: &'static str,
    /// Who put it into words. `builtin-extractive-1` is no model: it takes sentences as they are.
    #[schema(example = "builtin-extractive-1")]
    model: String,
    /// Of the instructions that the model had.
    #[schema(required)]
    promptset_hash: Option<String>,
    source_count: i32,
    created_at: DateTime<Utc>,
    #[serde(skip)]
    place: (i32, i64),
}

/// A statement with where it comes from.
#[derive(Serialize, ToSchema)]
#[schema(as = Fact)]
pub struct FactView {
    #[serde(flatten)]
    row: FactRow,
    /// The first hundred.
    sources: Vec<FactSourceView>,
    concepts: Vec<FactConceptView>,
    /// Facts that were found to say the same, and are a part of this one now. `PUT` `stable` takes one out again.
    duplicates: Vec<Uuid>,
    /// Facts that sound like it and do not say the same.
    candidate_contradictions: Vec<ContradictionView>,
}

/// A fact that sounds like another one and does not say the same: perhaps they contradict each other.
#[derive(Serialize, ToSchema)]
#[schema(as = CandidateContradiction)]
struct ContradictionView {
    fact_id: Uuid,
    text: String,
    /// In what they differ: `negation`, `number`, `unit`, `date`, `direction`, `roles`, `name`, `quantifier`, `certainty`,
    /// `wording`, or `judged` when somebody has said so.
    #[schema(example = "negation")]
    difference: &'static str,
    cosine: f32,
}

/// The facts that are nearest to one.
#[derive(Serialize, ToSchema)]
#[schema(as = SimilarFacts)]
pub struct SimilarView {
    /// Who made the vectors that were compared. `builtin-minilm-1` runs in the service itself.
    #[schema(example = "builtin-minilm-1")]
    model: String,
    /// The nearest first.
    data: Vec<SimilarRow>,
}

/// A fact, and how near it is.
#[derive(Serialize, ToSchema)]
#[schema(as = SimilarFact)]
struct SimilarRow {
    #[serde(flatten)]
    row: FactRow,
    /// Of the angle between the two: 1 for the same.
    #[schema(example = 0.87)]
    cosine: f32,
}

/// A source that makes the statement, in its own words.
#[derive(Serialize, ToSchema)]
#[schema(as = FactSource)]
struct FactSourceView {
    source_id: Uuid,
    #[schema(required)]
    title: Option<String>,
    url: String,
    #[schema(required)]
    chunk_index: Option<i32>,
    sentences: Vec<QuoteView>,
    /// The image that it rests on, for a fact of kind `image`.
    #[schema(required)]
    image_id: Option<Uuid>,
}

/// A sentence that a fact rests on.
#[derive(Serialize, ToSchema)]
#[schema(as = Quote)]
struct QuoteView {
    sentence_index: i32,
    #[schema(required)]
    text: Option<String>,
    /// For PDFs, from 1.
    #[schema(required)]
    page: Option<i32>,
}

/// A concept that a fact speaks of.
#[derive(Serialize, ToSchema)]
#[schema(as = FactConcept)]
pub struct FactConceptView {
    concept_id: Uuid,
    canonical_name: String,
    context: String,
    #[serde(skip)]
    place: usize,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FactQuery {
    /// A part of the text, in any case.
    q: Option<String>,
    /// `new`, `stable`, `duplicate`, `removed` or `rejected`.
    status: Option<String>,
    /// `text` or `image`.
    kind: Option<String>,
    source_id: Option<Uuid>,
    concept_id: Option<Uuid>,
    /// Ids with commas between them: facts that speak of all of these concepts.
    concepts: Option<String>,
    /// `newest` (the default) or `source_count`.
    sort: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SimilarQuery {
    /// 1 to 50.
    #[param(default = 10)]
    limit: Option<u32>,
}

/// The fact of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct FactPath {
    #[serde(rename = "factID")]
    fact: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FactJudgement {
    /// `rejected`, or `stable` to take that back.
    #[schema(example = "rejected")]
    status: String,
}

/// The facts of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts", tag = "Facts",
    params(("repoID" = String, Path, description = "Its id or its slug"), FactQuery, PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "In the order asked for")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository,
    Query(query): Query<FactQuery>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let (filter, by_sources) = query.parsed()?;
    let after: Option<(i32, i64)> = page.after()?;
    let rows = api.app.list_facts(&repository.0, &filter, by_sources, after, page.rows()).await?;
    page.page(rows.into_iter().map(FactRow::from).collect(), |row| row.place)
}

/// The facts that a source makes.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/facts", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("sourceID" = Uuid, Path), PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "Newest first")))]
pub async fn list_of_source(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<SourcePath>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let after: Option<(i32, i64)> = page.after()?;
    let rows = api.app.list_source_facts(&repository.0, path.source.into(), after, page.rows()).await?;
    page.page(rows.into_iter().map(FactRow::from).collect(), |row| row.place)
}

/// A fact with its sources, the sentences that it rests on, and its concepts.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}", tag = "Facts",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("factID" = Uuid, Path)),
    responses((status = 200, body = FactView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<FactPath>,
) -> Result<Json<FactView>, Problem> {
    Ok(Json(api.app.find_fact(&repository.0, path.fact.into()).await?.into()))
}

/// The concepts that a fact speaks of.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}/concepts", tag = "Facts",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("factID" = Uuid, Path), PageRequest),
    responses((status = 200, body = Page<FactConceptView>, description = "By name")))]
pub async fn concepts(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<FactPath>,
    page: PageRequest,
) -> Result<Page<FactConceptView>, Problem> {
    let after: Option<usize> = page.after()?;
    let seen = api.app.find_fact(&repository.0, path.fact.into()).await?;
    // There are few, so a place among them will do.
    let numbered =
        seen.concepts.into_iter().enumerate().skip(after.map_or(0, |after| after.saturating_add(1)));
    let rows = numbered.map(|(place, concept)| FactConceptView { place, ..concept.into() });
    page.page(rows.collect(), |row| row.place)
}

/// The facts that are nearest to a fact in what they say.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}/similar", tag = "Facts",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("factID" = Uuid, Path), SimilarQuery),
    responses((status = 200, body = SimilarView, description = "Empty while the fact has no vector"),
              (status = 503, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: not_configured, or the vector store does not answer")))]
pub async fn similar(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<FactPath>,
    Query(query): Query<SimilarQuery>,
) -> Result<Json<SimilarView>, Problem> {
    let limit = query.limit.unwrap_or(10);
    if !(1..=50).contains(&limit) {
        return Err(Error::invalid("limit", "must be a whole number from 1 to 50").into());
    }
    let (model, found) = api.app.list_similar_facts(&repository.0, path.fact.into(), limit).await?;
    let data = found.into_iter().map(|found| SimilarRow { row: found.fact.into(), cosine: found.cosine });
    Ok(Json(SimilarView { model, data: data.collect() }))
}

/// Reject a fact, or take that back. A duplicate that is made `stable` leaves the fact that stood for it.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/facts/{factID}", tag = "Facts",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("factID" = Uuid, Path)),
    request_body = FactJudgement,
    responses((status = 200, body = FactView, description = "As it is now"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn judge(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<FactPath>,
    Json(body): Json<FactJudgement>,
) -> Result<Json<FactView>, Problem> {
    let rejected = match body.status.as_str() {
        "rejected" => true,
        "stable" => false,
        _ => return Err(Error::invalid("status", "must be rejected or stable").into()),
    };
    Ok(Json(api.app.judge_fact(&origin.into(), &repository.0, path.fact.into(), rejected).await?.into()))
}

impl FactQuery {
    fn parsed(self) -> Result<(FactFilter, bool), Error> {
        let status = self.status.map(|text| {
            let found = FactStatus::ALL.iter().find(|status| status.as_str() == text).copied();
            found.ok_or_else(|| Error::invalid("status", "no fact has this status"))
        });
        let kind = self.kind.map(|text| {
            let found = FactKind::ALL.iter().find(|kind| kind.as_str() == text).copied();
            found.ok_or_else(|| Error::invalid("kind", "must be text or image"))
        });
        let by_sources = match self.sort.as_deref() {
            None | Some("newest") => false,
            Some("source_count") => true,
            Some(_) => return Err(Error::invalid("sort", "must be newest or source_count")),
        };
        if self.q.as_ref().is_some_and(|q| q.chars().count() > 200) {
            return Err(Error::invalid("q", "must be at most 200 characters"));
        }
        let listed = self.concepts.iter().flat_map(|list| list.split(',')).map(|id| {
            id.trim().parse().map_err(|_| Error::invalid("concepts", "must be ids with commas between them"))
        });
        let mut concepts: Vec<ConceptId> = listed.collect::<Result<_, _>>()?;
        concepts.extend(self.concept_id.map(ConceptId::from));
        if concepts.len() > MOST_CONCEPTS {
            return Err(Error::invalid("concepts", "must be at most 20"));
        }
        let filter = FactFilter {
            status: status.transpose()?,
            kind: kind.transpose()?,
            q: self.q.filter(|q| !q.is_empty()),
            source: self.source_id.map(Into::into),
            concepts,
        };
        Ok((filter, by_sources))
    }
}

impl From<Fact> for FactRow {
    fn from(fact: Fact) -> Self {
        Self {
            id: fact.id.uuid(),
            place: (fact.source_count, fact.no),
            text: fact.text,
            content_hash: fact.hash.to_string(),
            kind: fact.kind.as_str(),
            status: fact.status.as_str(),
            model: fact.model,
            promptset_hash: fact.promptset_hash.map(|hash| hash.to_string()),
            source_count: fact.source_count,
            created_at: fact.created_at,
        }
    }
}

impl From<SeenFact> for FactView {
    fn from(seen: SeenFact) -> Self {
        let sources = seen.sources.into_iter().map(|quoted| {
            let words = quoted.quotes.into_iter().zip(quoted.pages);
            let sentences = quoted.link.sentences.iter().zip(words).map(|(index, (text, page))| QuoteView {
                sentence_index: *index,
                text,
                page,
            });
            FactSourceView {
                source_id: quoted.link.source.uuid(),
                sentences: sentences.collect(),
                title: quoted.link.title,
                url: quoted.link.url,
                chunk_index: quoted.link.chunk,
                image_id: quoted.link.image.map(ImageId::uuid),
            }
        });
        Self {
            row: seen.fact.into(),
            sources: sources.collect(),
            concepts: seen.concepts.into_iter().map(FactConceptView::from).collect(),
            duplicates: seen.duplicates.into_iter().map(FactId::uuid).collect(),
            candidate_contradictions: seen.contradictions.into_iter().map(ContradictionView::from).collect(),
        }
    }
}

impl From<Contradiction> for ContradictionView {
    fn from(found: Contradiction) -> Self {
        Self {
            fact_id: found.fact.uuid(),
            text: found.text,
            difference: found.difference.as_str(),
            cosine: found.cosine,
        }
    }
}

impl From<FactConcept> for FactConceptView {
    fn from(concept: FactConcept) -> Self {
        Self {
            concept_id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            place: 0,
        }
    }
}
