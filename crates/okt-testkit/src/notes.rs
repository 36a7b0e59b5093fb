//! A small service of notes: the real gate, table, paging, idempotency and limits around one table of its own, for
//! testing them before and apart from the routes of the product.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use okt_api::{Api, once};
use okt_app::Check;
use okt_http::{
    Code, EntryPage, Gate, Guard, Json, Page, PageRequest, Path, Principal, Problem, Query, Routes, Served,
    StaticFile, StaticFiles, WellFormed, route,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Lets in three people by their names: `Authorization: Bearer ada`, `bob`, or `dan` until he has left. What is not in
/// small letters is no name.
#[derive(Clone)]
pub struct Notes {
    api: Api,
    document: Arc<OnceLock<String>>,
    dan_has_left: Arc<AtomicBool>,
}

impl Gate for Notes {
    async fn admit(&self, guard: Guard, parts: &mut Parts) -> Result<Option<Principal>, Problem> {
        let name =
            parts.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())) {
            parts.extensions.insert(WellFormed);
        }
        match (guard, name) {
            (Guard::Probe | Guard::Public, _) => Ok(None),
            (_, Some("dan")) if self.dan_has_left.load(Ordering::Relaxed) => {
                Err(Problem::new(Code::Unauthenticated, "dan has left"))
            }
            (_, Some(name @ ("ada" | "bob" | "dan"))) => {
                let person: Arc<str> = format!("user:{name}").into();
                Ok(Some(Principal { credential: Arc::clone(&person), person }))
            }
            (_, _) => Err(Problem::new(Code::Unauthenticated, "say who you are")),
        }
    }
}

/// The SQL that makes the table.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS notes (id bigserial PRIMARY KEY, text text NOT NULL);
    DO $$ BEGIN GRANT ALL ON notes, notes_id_seq TO okt_service; EXCEPTION WHEN undefined_object THEN NULL; END $$";

/// The routes, around the table in the default database.
pub fn service(api: &Api) -> anyhow::Result<Served> {
    let document = Arc::<OnceLock<String>>::default();
    let routes = table(api, Arc::clone(&document));
    let _ = document.set(serde_json::to_string(&routes.openapi())?);
    Ok(routes.into_service())
}

/// The table itself, to look at.
pub fn routes(api: &Api) -> Routes<Notes> {
    table(api, Arc::default())
}

fn table(api: &Api, document: Arc<OnceLock<String>>) -> Routes<Notes> {
    let notes = Notes { api: api.clone(), document, dan_has_left: Arc::default() };
    Routes::new(notes.clone(), api.edge(), okt_api::document())
        .at(Guard::Probe, route!(ready))
        .at(Guard::Authenticated, once(&notes.api.app, route!(create)))
        .at(Guard::Authenticated, route!(list))
        .at(Guard::Public, route!(show))
        .at(Guard::Public, route!(slow))
        .at(Guard::Public, route!(busy))
        .at(Guard::Public, route!(panics))
        .at(Guard::Public, route!(openapi))
        .at(Guard::Public, route!(leave))
        .at_stream(Guard::Authenticated, IDLE, route!(ticks))
        .mount(Guard::Authenticated, "/echo", tower::service_fn(echo))
        .files("", pages())
}

/// How long `/ticks` may be silent.
pub const IDLE: Duration = Duration::from_secs(2);

/// The script, larger than what is sent at once.
pub const SCRIPT: &str = "/assets/app-3f9a1c2e.js";

#[derive(Serialize, ToSchema)]
struct Note {
    id: i64,
    text: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewNote {
    text: String,
}

/// Waits this many milliseconds before answering, after the row is written.
pub const WAIT: &str = "x-wait-ms";
/// Fails instead of doing anything: `error` or `panic`.
pub const FAIL: &str = "x-fail";

#[utoipa::path(get, path = "/readyz", responses((status = 200)))]
async fn ready(State(notes): State<Notes>) -> Result<StatusCode, Problem> {
    let up = notes.api.app.readiness().await.iter().all(Check::serves);
    Ok(if up && !notes.api.edge().is_draining() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE })
}

/// What the contract test reads.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, body = String)))]
async fn openapi(State(notes): State<Notes>) -> ([(&'static str, &'static str); 1], String) {
    ([("content-type", "application/json")], notes.document.get().cloned().unwrap_or_default())
}

#[utoipa::path(post, path = "/notes", request_body = NewNote, responses((status = 201, body = Note)))]
async fn create(
    State(notes): State<Notes>,
    headers: HeaderMap,
    Json(new): Json<NewNote>,
) -> Result<(StatusCode, [(&'static str, String); 1], Json<Note>), Problem> {
    let asked = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match asked(FAIL) {
        Some("error") => return Err(okt_model::Error::internal("asked to fail").into()),
        Some(_) => panic!("asked to panic"),
        None => {}
    }
    let id: i64 = sqlx::query_scalar("INSERT INTO notes (text) VALUES ($1) RETURNING id")
        .bind(&new.text)
        .fetch_one(&mut *notes.api.app.databases().acquire_system().await?)
        .await
        .map_err(okt_pg::Error::from)?;
    let wait = asked(WAIT).and_then(|text| text.parse().ok()).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(wait)).await;
    Ok((StatusCode::CREATED, [("location", format!("/notes/{id}"))], Json(Note { id, text: new.text })))
}

/// What a list may be asked for; it shows the same notes whatever that is.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only declared: cursors are bound to what is asked for")]
struct Filters {
    kind: Option<String>,
    sort: Option<String>,
}

#[utoipa::path(get, path = "/notes", params(Filters, PageRequest), responses((status = 200, body = Page<Note>)))]
async fn list(State(notes): State<Notes>, page: PageRequest) -> Result<Page<Note>, Problem> {
    let after: i64 = page.after()?.unwrap_or(0);
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, text FROM notes WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(after)
            .bind(page.rows())
            .fetch_all(&mut *notes.api.app.databases().acquire_system().await?)
            .await
            .map_err(okt_pg::Error::from)?;
    page.page(rows.into_iter().map(|(id, text)| Note { id, text }).collect(), |note| note.id)
}

#[utoipa::path(get, path = "/notes/{id}", params(("id" = i64, Path)), responses((status = 200, body = Note)))]
async fn show(State(notes): State<Notes>, Path(id): Path<i64>) -> Result<Json<Note>, Problem> {
    let row: Option<(i64, String)> = sqlx::query_as("SELECT id, text FROM notes WHERE id = $1")
        .bind(id)
        .fetch_optional(&mut *notes.api.app.databases().acquire_system().await?)
        .await
        .map_err(okt_pg::Error::from)?;
    let (id, text) = row.ok_or(okt_model::Error::NotFound("note"))?;
    Ok(Json(Note { id, text }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Slow {
    ms: u32,
}

/// Holds a connection for as long as it is told to.
#[utoipa::path(get, path = "/slow", params(Slow), responses((status = 204)))]
async fn slow(State(notes): State<Notes>, Query(slow): Query<Slow>) -> Result<StatusCode, Problem> {
    sqlx::query("SELECT pg_sleep($1::float8 / 1000)")
        .bind(f64::from(slow.ms))
        .execute(&mut *notes.api.app.databases().acquire_system().await?)
        .await
        .map_err(okt_pg::Error::from)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Computes for as long as it is told to, and lets nobody else onto its thread.
#[utoipa::path(get, path = "/busy", params(Slow), responses((status = 204)))]
async fn busy(Query(slow): Query<Slow>) -> StatusCode {
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(slow.ms.into()) {
        std::hint::spin_loop();
    }
    StatusCode::NO_CONTENT
}

#[utoipa::path(get, path = "/panics", responses((status = 204)))]
async fn panics() -> StatusCode {
    panic!("asked to panic")
}

/// From now on dan is not let in.
#[utoipa::path(delete, path = "/people/dan", responses((status = 204)))]
async fn leave(State(notes): State<Notes>) -> StatusCode {
    notes.dan_has_left.store(true, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Ticks {
    /// Milliseconds between two of them.
    every_ms: u32,
    count: u32,
}

/// So many events, so far apart.
#[utoipa::path(get, path = "/ticks", params(Ticks),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
async fn ticks(Query(asked): Query<Ticks>) -> Response {
    events(asked.every_ms, asked.count)
}

fn events(every_ms: u32, count: u32) -> Response {
    let events = stream::unfold(0, move |n| async move {
        if n == count {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(every_ms.into())).await;
        Some((Ok::<_, Infallible>(format!("data: {n}\n\n")), n + 1))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

/// A service that is not a handler: says who asked for what, or counts without end.
async fn echo(request: Request) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    Ok(match parts.uri.path() {
        "/echo/events" => events(100, u32::MAX),
        "/echo/panic" => panic!("asked to panic"),
        path => {
            let person = parts.extensions.get::<Principal>().map(|principal| &*principal.person);
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            let told = serde_json::json!({
                "method": parts.method.as_str(), "path": path, "person": person, "bytes": body.len(),
            });
            axum::Json(told).into_response()
        }
    })
}

fn pages() -> StaticFiles {
    let page = "<!doctype html><title>Notes</title><meta property=\"csp-nonce\" nonce=\"NONCE\"><script src=\"/assets/app-3f9a1c2e.js\"></script>";
    let script = StaticFile::new(SCRIPT, Bytes::from("// notes\n".repeat(10_000)), true)
        .encoded("br", Bytes::from_static(b"as brotli"))
        .encoded("gzip", Bytes::from_static(b"as gzip"));
    let icon = StaticFile::new("icon.svg", Bytes::from_static(b"<svg/>"), false);
    StaticFiles::new(
        EntryPage::new(page),
        [(SCRIPT.trim_start_matches('/').to_owned(), script), ("icon.svg".to_owned(), icon)],
    )
}
