//! Answers to questions: asked, streamed while they are written, kept, and conversations.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use okt_app::{AnswerListing, AnswerWatch, Asked};
use okt_auth::permissions::{FactRead, ReportWrite};
use okt_http::{Code, Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Answer, AnswerId, ConversationId};
use okt_wire::answers::{
    AnswerAccepted, AnswerListQuery, AnswerQuery, AnswerReport, AnswerRow, AnswerUpdate, AnswerView, AskBody,
    ConversationView, EstimateRequest, EstimateView, FeedbackBody, FullConversation, NewConversation, Shown,
};
use okt_wire::reports::ReportView;
use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;

use crate::extract::Repository;
use crate::idempotency::key_of;
use crate::{Api, streams};

/// How long a client that does not stream waits for an answer.
const PATIENCE: Duration = Duration::from_secs(12);
/// How long a stream may be silent before the layer that keeps it alive is given nothing.
const SILENCE: Duration = Duration::from_secs(10);

/// The answer of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct AnswerPath {
    #[serde(rename = "answerID")]
    answer: Uuid,
}

/// The conversation of a path.
#[derive(Deserialize)]
pub struct ConversationPath {
    #[serde(rename = "conversationID")]
    conversation: Uuid,
}

/// Ask a question.
///
/// Evidence is looked for at once; the answer is written and checked sentence by sentence in the background. With
/// `Accept: text/event-stream` the events come as they happen: `understood`, `evidence`, `sentence`, `dropped`, `disagreeing`, `cost`,
/// `turned`, and last `done` or `error`; the headers `Location` and `X-Answer-Id` name the answer. Otherwise the answer comes as JSON if it is
/// done within 12 seconds, else 202. A model is asked for those who may write reports, and for everybody where the repository's settings
/// say so. The same question with the same evidence gets the same answer, for nothing.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/ask", tag = "Answers", operation_id = "createAnswer",
    request_body = AskBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Up to 255 visible ASCII characters; the same key and body get the same answer again, for 24 hours")),
    responses((status = 200, content((AnswerView = "application/json"), (String = "text/event-stream",
                  example = "id: 1\nevent: understood\ndata: {\"question\":\"How high are the tides in the Bay of Fundy?\"}\n\n")),
               description = "The answer, or its events"),
              (status = 202, body = AnswerAccepted, description = "It is being written"),
              (status = 409, description = "quota_exceeded"),
              (status = 429, description = "too_many_answers, ask_limit")))]
pub async fn ask(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    headers: HeaderMap,
    Json(body): Json<AskBody>,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let explain = body.explain.unwrap_or(false);
    let request = body.parsed(key_of(&headers)?)?;
    let (answer, again) = match api.app.ask_question(&repository.0, &request).await? {
        Asked::New(answer) => (answer, false),
        Asked::Again(answer) => (answer, true),
        Asked::Mismatch => {
            let detail = "this Idempotency-Key was used for another question within 24 hours";
            return Err(Problem::new(Code::IdempotencyMismatch, detail));
        }
    };
    let mut response = if wants_events(&headers) {
        events_from(&api, &repository, answer.id, 0).await?
    } else {
        let most = PATIENCE.min(api.app.config().server.write_timeout.duration().mul_f32(0.8));
        let left = most.saturating_sub(begun.elapsed());
        if api.app.await_answer(&repository.0, answer.id, left).await? {
            Json(seen(&api, &repository, answer.id, explain).await?).into_response()
        } else {
            let job_id = answer.job.map(okt_model::JobId::uuid);
            let accepted = AnswerAccepted { answer_id: answer.id.uuid(), job_id };
            (StatusCode::ACCEPTED, Json(accepted)).into_response()
        }
    };
    name(&mut response, &repository, &answer, again);
    Ok(response)
}

/// The answers that you may see: your own, and those that are shared.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/answers", tag = "Answers", operation_id = "listAnswers",
    params(PageRequest, AnswerListQuery),
    responses((status = 200, body = Page<AnswerRow>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    page: PageRequest,
    Query(query): Query<AnswerListQuery>,
) -> Result<Page<AnswerRow>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let listing = AnswerListing { shared: query.shared, conversation: query.conversation_id.map(Into::into) };
    let rows = api.app.list_answers(&repository.0, listing, before.map(Into::into), page.rows()).await?;
    let slug = api.app.repository_slug(&repository.0).await?;
    page.page(rows.into_iter().map(|row| AnswerRow::new(row, &slug)).collect(), |row| row.id)
}

/// An answer.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/answers/{answerID}", tag = "Answers", operation_id = "getAnswer",
    params(AnswerQuery),
    responses((status = 200, body = AnswerView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
    Query(query): Query<AnswerQuery>,
) -> Result<Json<AnswerView>, Problem> {
    let explain = query.explain.unwrap_or(false);
    Ok(Json(seen(&api, &repository, path.answer.into(), explain).await?))
}

/// Share an answer of yours with everybody who may read facts of the repository, or take that back.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/answers/{answerID}", tag = "Answers", operation_id = "updateAnswer",
    request_body = AnswerUpdate,
    responses((status = 200, body = AnswerView, description = "As it is now")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
    Json(body): Json<AnswerUpdate>,
) -> Result<Json<AnswerView>, Problem> {
    let seen = api.app.share_answer(&repository.0, path.answer.into(), body.shared).await?;
    let slug = api.app.repository_slug(&repository.0).await?;
    Ok(Json(Shown { slug: &slug }.answer(seen, false)))
}

/// Delete an answer of yours.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/answers/{answerID}", tag = "Answers",
    operation_id = "deleteAnswer", responses((status = 204, description = "It is gone")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_answer(&repository.0, path.answer.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The events of an answer, from the first or from after the one that `Last-Event-ID` names.
///
/// Each event has a name, an `id` (1, 2, 3 …) and one line of JSON. The last one is `done` or `error`; asked again from after that, the
/// answer is 204.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/answers/{answerID}/events", tag = "Answers",
    operation_id = "watchAnswer",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events until the answer is done",
               example = "id: 3\nevent: sentence\ndata: {\"index\":0,\"text\":\"The Bay of Fundy has the highest tides of the world.\",\"verdict\":\"supported\"}\n\n"),
              (status = 204, description = "It is done, and the last event was received")))]
pub async fn events(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // What can't be understood counts as nothing received.
    let last = streams::last_event_id(&headers).and_then(|id| id.parse().ok()).unwrap_or(0);
    events_from(&api, &repository, path.answer.into(), last).await
}

/// Stop an answer of yours.
///
/// What is there stays.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/answers/{answerID}/cancel", tag = "Answers",
    operation_id = "cancelAnswer",
    responses((status = 202, body = AnswerView, description = "As it is now"),
              (status = 409, description = "conflict")))]
pub async fn cancel(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
) -> Result<(StatusCode, Json<AnswerView>), Problem> {
    let seen = api.app.cancel_answer(&repository.0, path.answer.into()).await?;
    let slug = api.app.repository_slug(&repository.0).await?;
    Ok((StatusCode::ACCEPTED, Json(Shown { slug: &slug }.answer(seen, false))))
}

/// Write an answer down as a report.
///
/// The report has its sentences with what they cite, and is checked as every report.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/answers/{answerID}/report", tag = "Answers",
    operation_id = "createAnswerReport", request_body = AnswerReport,
    responses((status = 201, body = ReportView, description = "The report, with the job that checks it"),
              (status = 409, description = "conflict")))]
pub async fn report(
    State(api): State<Api>,
    repository: Repository<ReportWrite>,
    Path(path): Path<AnswerPath>,
    Json(body): Json<AnswerReport>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<ReportView>), Problem> {
    let (title, topic) = (body.title.as_deref(), body.topic.as_deref());
    let (made, job) = api.app.report_answer(&repository.0, path.answer.into(), title, topic).await?;
    let (repository, id) = (repository.0.repository(), made.report.id);
    let location = format!("/api/v1/repositories/{repository}/reports/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(ReportView::new(made, job))))
}

/// Say whether an answer, or one of its sentences, is right.
///
/// What you said of it before is replaced.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/answers/{answerID}/feedback", tag = "Answers",
    operation_id = "createAnswerFeedback", request_body = FeedbackBody,
    responses((status = 204, description = "It is kept")))]
pub async fn feedback(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<AnswerPath>,
    Json(body): Json<FeedbackBody>,
) -> Result<StatusCode, Problem> {
    api.app.rate_answer(&repository.0, path.answer.into(), body.parsed()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What an answer would cost.
///
/// Nothing is asked and nothing is kept.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/ask/estimate", tag = "Answers", operation_id = "estimateAnswer",
    request_body = EstimateRequest,
    responses((status = 200, body = EstimateView, description = "From the last 50 answers")))]
pub async fn estimate(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Json(body): Json<EstimateRequest>,
) -> Result<Json<EstimateView>, Problem> {
    Ok(Json(api.app.estimate_answer(&repository.0, body.mode()?).await?.into()))
}

/// Your conversations.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/conversations", tag = "Answers",
    operation_id = "listConversations", params(PageRequest),
    responses((status = 200, body = Page<ConversationView>, description = "Newest first")))]
pub async fn list_conversations(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    page: PageRequest,
) -> Result<Page<ConversationView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let before = before.map(ConversationId::from);
    let rows = api.app.list_conversations(&repository.0, before, page.rows()).await?;
    page.page(rows.into_iter().map(ConversationView::from).collect(), |row| row.id)
}

/// Begin a conversation.
///
/// A question in it is understood by the three before it, and by what the last answer was about.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/conversations", tag = "Answers",
    operation_id = "createConversation", request_body = NewConversation,
    responses((status = 201, body = ConversationView, description = "The conversation")))]
pub async fn create_conversation(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Json(body): Json<NewConversation>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<ConversationView>), Problem> {
    let made = api.app.create_conversation(&repository.0, body.title.as_deref()).await?;
    let location = format!("/api/v1/repositories/{}/conversations/{}", repository.0.repository(), made.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(made.into())))
}

/// A conversation of yours with its answers.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/conversations/{conversationID}", tag = "Answers",
    operation_id = "getConversation",
    responses((status = 200, body = FullConversation, description = "With its answers, the oldest first")))]
pub async fn show_conversation(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<ConversationPath>,
) -> Result<Json<FullConversation>, Problem> {
    let (conversation, of) = api.app.find_conversation(&repository.0, path.conversation.into()).await?;
    let slug = api.app.repository_slug(&repository.0).await?;
    let answers = of.into_iter().map(|row| AnswerRow::new(row, &slug)).collect();
    Ok(Json(FullConversation { conversation: conversation.into(), answers }))
}

/// Delete a conversation of yours with its answers.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/conversations/{conversationID}", tag = "Answers",
    operation_id = "deleteConversation", responses((status = 204, description = "It is gone")))]
pub async fn delete_conversation(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<ConversationPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_conversation(&repository.0, path.conversation.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn seen(
    api: &Api,
    repository: &Repository<FactRead>,
    id: AnswerId,
    explain: bool,
) -> Result<AnswerView, Problem> {
    let seen = api.app.find_answer(&repository.0, id).await?;
    let slug = api.app.repository_slug(&repository.0).await?;
    Ok(Shown { slug: &slug }.answer(seen, explain))
}

/// The first of the types that a client accepts and that there are.
fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut accepted = accepted.flat_map(|value| value.split(',')).map(|one| one.trim().to_ascii_lowercase());
    accepted
        .find(|one| one.starts_with("text/event-stream") || one.starts_with("application/json"))
        .is_some_and(|one| one.starts_with("text/event-stream"))
}

async fn events_from(
    api: &Api,
    repository: &Repository<FactRead>,
    id: AnswerId,
    after: i32,
) -> Result<Response, Problem> {
    let slug = api.app.repository_slug(&repository.0).await?;
    Ok(match api.app.watch_answer(&repository.0, id, after).await? {
        Some(watch) => stream_of(watch, slug),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

fn stream_of(watch: AnswerWatch, slug: String) -> Response {
    let events = stream::unfold((watch, slug), |(mut watch, slug)| async move {
        loop {
            if watch.is_over() {
                return None;
            }
            // Boxed, because a stream that waits has no use for the memory.
            let events = Box::pin(watch.next(SILENCE)).await;
            let (mut text, shown) = (String::new(), Shown { slug: &slug });
            for (place, event) in events {
                let event = shown.event(watch.answer(), event);
                let _ = writeln!(text, "id: {place}\nevent: {}\ndata: {}\n", event.name, event.data);
            }
            if !text.is_empty() {
                return Some((Ok::<_, Infallible>(text), (watch, slug)));
            }
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// Says which answer it is before anything of it is there.
fn name(response: &mut Response, repository: &Repository<FactRead>, answer: &Answer, again: bool) {
    let location = format!("/api/v1/repositories/{}/answers/{}", repository.0.repository(), answer.id);
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&location) {
        headers.insert(header::LOCATION, location);
    }
    if let Ok(id) = HeaderValue::from_str(&answer.id.to_string()) {
        headers.insert(HeaderName::from_static("x-answer-id"), id);
    }
    if again {
        headers.insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    }
}
