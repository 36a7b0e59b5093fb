//! A small service of notes: the real gate, table, paging, idempotency and limits around one table of its own, for
//! testing them before and apart from the routes of the product.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use okt_api::{Api, once};
use okt_http::{
    Code, Gate, Guard, Json, Page, PageRequest, Path, Principal, Problem, Query, Routes, Served, route,
};
use okt_store::from_sqlx;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Lets in two people by their names: `Authorization: Bearer ada`, or `bob`.
#[derive(Clone)]
pub struct Notes {
    api: Api,
    document: Arc<OnceLock<String>>,
}

impl Gate for Notes {
    async fn admit(&self, guard: Guard, parts: &mut Parts) -> Result<Option<Principal>, Problem> {
        let name =
            parts.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match (guard, name) {
            (Guard::Probe | Guard::Public, _) => Ok(None),
            (_, Some(name @ ("ada" | "bob"))) => Ok(Some(Principal(format!("user:{name}").into()))),
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
    let _ = document.set(serde_json::to_string(routes.openapi())?);
    Ok(routes.into_service())
}

/// The table itself, to look at.
pub fn routes(api: &Api) -> Routes<Notes> {
    table(api, Arc::default())
}

fn table(api: &Api, document: Arc<OnceLock<String>>) -> Routes<Notes> {
    let notes = Notes { api: api.clone(), document };
    Routes::new(notes.clone(), api.edge(), okt_api::document())
        .at(Guard::Probe, route!(ready))
        .at(Guard::Authenticated, once(&notes.api.app, route!(create)))
        .at(Guard::Authenticated, route!(list))
        .at(Guard::Public, route!(show))
        .at(Guard::Public, route!(slow))
        .at(Guard::Public, route!(panics))
        .at(Guard::Public, route!(openapi))
}

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
    let up = notes.api.app.readiness().await.iter().all(|check| check.up);
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
        .map_err(from_sqlx)?;
    let wait = asked(WAIT).and_then(|text| text.parse().ok()).unwrap_or(0);
    tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
    Ok((StatusCode::CREATED, [("location", format!("/notes/{id}"))], Json(Note { id, text: new.text })))
}

#[utoipa::path(get, path = "/notes", params(PageRequest), responses((status = 200, body = Page<Note>)))]
async fn list(State(notes): State<Notes>, page: PageRequest) -> Result<Page<Note>, Problem> {
    let after: i64 = page.after()?.unwrap_or(0);
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, text FROM notes WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(after)
            .bind(page.rows())
            .fetch_all(&mut *notes.api.app.databases().acquire_system().await?)
            .await
            .map_err(from_sqlx)?;
    page.page(rows.into_iter().map(|(id, text)| Note { id, text }).collect(), |note| note.id)
}

#[utoipa::path(get, path = "/notes/{id}", params(("id" = i64, Path)), responses((status = 200, body = Note)))]
async fn show(State(notes): State<Notes>, Path(id): Path<i64>) -> Result<Json<Note>, Problem> {
    let row: Option<(i64, String)> = sqlx::query_as("SELECT id, text FROM notes WHERE id = $1")
        .bind(id)
        .fetch_optional(&mut *notes.api.app.databases().acquire_system().await?)
        .await
        .map_err(from_sqlx)?;
    let (id, text) = row.ok_or(okt_model::Error::NotFound("note"))?;
    Ok(Json(Note { id, text }))
}

#[derive(Deserialize, IntoParams)]
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
        .map_err(from_sqlx)?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/panics", responses((status = 204)))]
async fn panics() -> StatusCode {
    panic!("asked to panic")
}
