//! Concepts: what the facts of a repository speak of.

use axum::extract::State;
use http::HeaderMap;
use okt_app::{ConceptPlace, RelationPlace, SharedPlace, SourcePlace, TimelinePlace};
use okt_auth::permissions::ConceptRead;
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_wire::concepts::{
    ConceptFloor, ConceptPage, ConceptQuery, ConceptRow, ConceptSourcePage, ConceptSourceView, ConceptView,
    RelationFloor, RelationPage, RelationQuery, RelationRow, RelationView, TimelineEntry, TimelinePage,
};
use okt_wire::facts::FactRow;
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::Repository;

/// The concept of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct ConceptPath {
    #[serde(rename = "conceptID")]
    pub concept: Uuid,
}

/// Two concepts of a path.
#[derive(Deserialize)]
pub struct RelationPath {
    #[serde(rename = "conceptID")]
    concept: Uuid,
    #[serde(rename = "otherID")]
    other: Uuid,
}

/// The concepts of a repository, each with the other contexts of its name.
///
/// Concepts with fewer facts than the setting `concepts.min_concept_fact_count` are left out, unless `show_small=true`. Where
/// nothing would be left they are listed, and `floor.applied` is false.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts", tag = "Concepts",
    operation_id = "listConcepts", params(ConceptQuery, PageRequest),
    responses((status = 200, body = ConceptPage, description = "In the order asked for")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Query(query): Query<ConceptQuery>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<ConceptPage>), Problem> {
    let listing = query.parsed()?;
    let by_name = listing.by_name;
    let after = if by_name {
        let after: Option<(bool, String, i64)> = page.after()?;
        after.map(|(applied, name, context)| (applied, ConceptPlace::Name(name, context)))
    } else {
        let after: Option<(bool, i64, i64)> = page.after()?;
        after.map(|(applied, count, no)| (applied, ConceptPlace::Facts(count, no)))
    };
    let found = api.app.list_concepts(&repository.0, &listing, after, page.rows()).await?;
    let (floors, applied) = (found.floors, found.applied);
    let rows = found.rows.into_iter().map(|row| ConceptRow::listed(row, by_name)).collect();
    let made = page.page(rows, |row: &ConceptRow| match &row.place {
        ConceptPlace::Name(name, context) => serde_json::json!((applied, name, context)),
        ConceptPlace::Facts(count, no) => serde_json::json!((applied, count, no)),
    })?;
    let (headers, data, next_cursor) = made.into_parts();
    let floor = ConceptFloor::new(floors, applied);
    Ok((headers, Json(ConceptPage { data, next_cursor, floor })))
}

/// A concept with its other names and contexts.
///
/// The id of a concept that was merged into another one leads to that one, and `merged_from` is the id that was asked for. All
/// routes below a concept lead on in the same way.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}", tag = "Concepts",
    operation_id = "getConcept",
    responses((status = 200, body = ConceptView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
) -> Result<Json<ConceptView>, Problem> {
    let seen = api.app.find_concept(&repository.0, path.concept.into()).await?;
    Ok(Json(ConceptView::new(seen, path.concept.into())))
}

/// The facts that speak of a concept.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/facts", tag = "Concepts",
    operation_id = "listConceptFacts", params(PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "Newest first")))]
pub async fn facts(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let before: Option<i64> = page.after()?;
    let found = api.app.list_concept_facts(&repository.0, path.concept.into(), before, page.rows()).await?;
    let rows = found.into_iter().map(|(place, fact)| FactRow { place: (0, place), ..fact.into() });
    page.page(rows.collect(), |row| row.place.1)
}

/// The sources of the facts that speak of a concept.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/sources", tag = "Concepts",
    operation_id = "listConceptSources", params(PageRequest),
    responses((status = 200, body = ConceptSourcePage, description = "Those that make the most of the facts first")))]
pub async fn sources(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<ConceptSourcePage>), Problem> {
    let after: Option<SourcePlace> = page.after()?;
    let found = api.app.list_concept_sources(&repository.0, path.concept.into(), after, page.rows()).await?;
    let complete = found.complete;
    let rows = found.rows.into_iter().map(ConceptSourceView::from).collect();
    let (headers, data, next_cursor) = page.page(rows, |row| row.place)?.into_parts();
    Ok((headers, Json(ConceptSourcePage { data, next_cursor, complete })))
}

/// The facts that speak of a concept in the order in which they were published.
///
/// The date of a fact is the earliest date that one of its sources was published. Facts whose sources do not say when they were
/// published come last, by when they were fetched.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/timeline", tag = "Concepts",
    operation_id = "listConceptTimeline", params(PageRequest),
    responses((status = 200, body = TimelinePage, description = "Oldest first")))]
pub async fn timeline(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<TimelinePage>), Problem> {
    let after: Option<TimelinePlace> = page.after()?;
    let found = api.app.list_concept_timeline(&repository.0, path.concept.into(), after, page.rows()).await?;
    let complete = found.complete;
    let rows = found.rows.into_iter().map(TimelineEntry::from).collect();
    let (headers, data, next_cursor) = page.page(rows, |row| row.place)?.into_parts();
    Ok((headers, Json(TimelinePage { data, next_cursor, complete })))
}

/// The concepts that share facts with a concept.
///
/// Relations with fewer shared facts than the setting `concepts.min_shared_fact_count` are left out, unless
/// `show_insignificant=true`; so are concepts with fewer facts than `concepts.min_concept_fact_count`, unless
/// `show_small=true`. Where nothing would be left all are listed, and `floor.applied` is false.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/relations", tag = "Concepts",
    operation_id = "listConceptRelations", params(RelationQuery, PageRequest),
    responses((status = 200, body = RelationPage, description = "Those that share the most facts first")))]
pub async fn relations(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    Query(query): Query<RelationQuery>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<RelationPage>), Problem> {
    let after: Option<(bool, RelationPlace)> = page.after()?;
    let show = (query.show_insignificant.unwrap_or(false), query.show_small.unwrap_or(false));
    let found =
        api.app.list_concept_relations(&repository.0, path.concept.into(), show, after, page.rows()).await?;
    let (floors, applied) = (found.floors, found.applied);
    let rows = found.rows.into_iter().map(RelationRow::from).collect();
    let made = page.page(rows, |row: &RelationRow| (applied, row.place))?;
    let (headers, data, next_cursor) = made.into_parts();
    let floor = RelationFloor::new(floors, applied);
    Ok((headers, Json(RelationPage { data, next_cursor, floor })))
}

/// What relates two concepts: how many facts they share, and which.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/relations/{otherID}", tag = "Concepts",
    operation_id = "getConceptRelation", params(PageRequest),
    responses((status = 200, body = RelationView, description = "Also if they share none")))]
pub async fn relation(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<RelationPath>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<RelationView>), Problem> {
    let after: Option<SharedPlace> = page.after()?;
    let pair = (path.concept.into(), path.other.into());
    let seen = api.app.find_concept_relation(&repository.0, pair, after, page.rows()).await?;
    let turned = seen.facts.first().is_some_and(|((turned, _), _)| *turned);
    let rows = seen.facts.into_iter().map(|((_, place), fact)| FactRow { place: (0, place), ..fact.into() });
    let made = page.page(rows.collect(), |row: &FactRow| (turned, row.place.1))?;
    let (headers, data, next_cursor) = made.into_parts();
    let view = RelationView {
        concept: seen.concept.into(),
        other: seen.other.into(),
        shared_fact_count: seen.shared_fact_count,
        strength: seen.strength.as_str(),
        data,
        next_cursor,
    };
    Ok((headers, Json(view)))
}
