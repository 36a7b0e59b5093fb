//! Resources: the same things as the tools read, by address.

use axum::extract::State;
use okt_auth::Needed;
use okt_auth::permissions::{ConceptRead, FactRead, ReportRead, RepositoryRead, SourceRead};
use okt_http::{Code, Problem};
use okt_model::{Error, RepositoryId, TextParts};
use okt_wire::concepts::ConceptView;
use okt_wire::facts::FactView;
use okt_wire::repositories::RepositoryView;
use okt_wire::source_pages::PageTextView;
use okt_wire::source_views::SourceView;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::{Place, Server};
use crate::extract::Repository;
use crate::repositories;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
const ROWS: u32 = 50;
/// How many values a completion has at most, and in how many repositories it looks for them.
const COMPLETIONS: usize = 20;
const LOOKED_AT: i64 = 1_000;

/// Below a repository.
const TEMPLATES: [(&str, &str, &str, &str); 5] = [
    ("fact/{id}", "fact", "A fact with its sources and the sentences that support it", JSON),
    ("concept/{id}", "concept", "A concept with its aliases and contexts", JSON),
    ("source/{id}", "source", "A source without its text", JSON),
    (
        "source/{id}/page/{n}",
        "page",
        "The sentences of a page of a PDF, with the facts that rest on them",
        JSON,
    ),
    ("report/{id}", "report", "The text of a report", MARKDOWN),
];

/// What was read, with its media type.
struct Read {
    kind: &'static str,
    text: String,
}

/// As `resources/templates/list` has them.
pub(super) fn templates() -> Value {
    let described = TEMPLATES.iter().map(|(path, name, description, kind)| {
        json!({
            "uriTemplate": format!("okt://r/{{repository}}/{path}"),
            "name": name,
            "title": name,
            "description": description,
            "mimeType": kind,
        })
    });
    described.collect()
}

/// A page of the repositories that the caller can see; the first one begins with the list of them.
pub(super) async fn list(server: &Server, cursor: Option<&str>) -> Result<Value, Problem> {
    let page = server.page("resources", ROWS, cursor).await?;
    let before: Option<Uuid> = page.after()?;
    let found = server.api.app.list_repositories(&server.caller, before.map(Into::into), page.limit());
    let (found, next) = found.await?;
    let all = json!({
        "uri": "okt://repositories",
        "name": "repositories",
        "title": "Repositories",
        "description": "The repositories that you can see",
        "mimeType": JSON,
    });
    let rows = found.into_iter().map(|seen| {
        json!({
            "uri": format!("okt://r/{}", seen.repository.slug),
            "name": seen.repository.slug,
            "title": seen.repository.name,
            "description": seen.repository.description,
            "mimeType": JSON,
        })
    });
    let rows: Vec<Value> = before.is_none().then_some(all).into_iter().chain(rows).collect();
    let (_, resources, next) = page.page_until(rows, next.map(RepositoryId::uuid))?.into_parts();
    let mut result = json!({ "resources": resources });
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    Ok(result)
}

/// What is at an address; `None` where nothing is, as far as the caller may know.
pub(super) async fn read(server: &Server, uri: &str) -> Result<Option<Value>, Problem> {
    let Some(path) = uri.strip_prefix("okt://") else { return Ok(None) };
    let parts: Vec<&str> = path.split('/').collect();
    let read = match parts.as_slice() {
        ["repositories"] => repositories(server).await,
        ["r", named] => repository(server, named).await,
        ["r", named, "fact", id] => fact(server, named, id).await,
        ["r", named, "concept", id] => concept(server, named, id).await,
        ["r", named, "source", id] => source(server, named, id).await,
        ["r", named, "source", id, "page", number] => page(server, named, id, number).await,
        ["r", named, "report", id] => report(server, named, id).await,
        _ => return Ok(None),
    };
    match read {
        Ok(Read { kind, text }) => {
            Ok(Some(json!({"contents": [{"uri": uri, "mimeType": kind, "text": text}]})))
        }
        // Whoever may not read something is told no more than whoever asks for nothing.
        Err(problem) if matches!(problem.code(), Code::NotFound | Code::Forbidden) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// What the value of an argument may go on as.
pub(super) async fn complete(server: &Server, argument: &str, begun: &str) -> Result<Value, Problem> {
    let mut values = Vec::new();
    if argument == "repository" {
        let (found, _) = server.api.app.list_repositories(&server.caller, None, LOOKED_AT).await?;
        let slugs = found.into_iter().map(|seen| seen.repository.slug);
        values = slugs.filter(|slug| slug.starts_with(begun)).collect();
    }
    let total = values.len();
    values.truncate(COMPLETIONS);
    Ok(json!({"completion": {"values": values, "total": total, "hasMore": total > COMPLETIONS}}))
}

fn json_of(view: &impl Serialize) -> Result<Read, Problem> {
    Ok(Read { kind: JSON, text: serde_json::to_string(view).map_err(Error::internal)? })
}

async fn place<P: Needed>(server: &Server, named: &str, id: &str) -> Result<(Place<P>, Uuid), Problem> {
    let id = id.parse().map_err(|_| Error::NotFound("resource"))?;
    Ok((server.place(named).await?, id))
}

async fn repositories(server: &Server) -> Result<Read, Problem> {
    let (found, _) = server.api.app.list_repositories(&server.caller, None, ROWS.into()).await?;
    let views: Vec<RepositoryView> = found.into_iter().map(Into::into).collect();
    json_of(&views)
}

async fn repository(server: &Server, named: &str) -> Result<Read, Problem> {
    let place: Place<RepositoryRead> = server.place(named).await?;
    let view = repositories::show(State(server.api.clone()), Repository(place.scope)).await?;
    json_of(&view.0)
}

async fn fact(server: &Server, named: &str, id: &str) -> Result<Read, Problem> {
    let (place, id): (Place<FactRead>, Uuid) = place(server, named, id).await?;
    json_of(&FactView::from(server.api.app.find_fact(&place.scope, id.into()).await?))
}

async fn concept(server: &Server, named: &str, id: &str) -> Result<Read, Problem> {
    let (place, id): (Place<ConceptRead>, Uuid) = place(server, named, id).await?;
    json_of(&ConceptView::new(server.api.app.find_concept(&place.scope, id.into()).await?, id.into()))
}

async fn source(server: &Server, named: &str, id: &str) -> Result<Read, Problem> {
    let (place, id): (Place<SourceRead>, Uuid) = place(server, named, id).await?;
    let admit = |_| Ok::<_, Problem>(());
    let (seen, ()) = server.api.app.find_source(&place.scope, id.into(), TextParts::NONE, admit).await?;
    json_of(&SourceView::new(seen, TextParts::NONE)?)
}

async fn page(server: &Server, named: &str, id: &str, number: &str) -> Result<Read, Problem> {
    let (place, id): (Place<SourceRead>, Uuid) = place(server, named, id).await?;
    let number = number.parse().map_err(|_| Error::NotFound("page"))?;
    let admit = |bytes: usize| server.budget.reserve(2 * bytes);
    // Counted until it is written.
    let (page, _reserved) = server.api.app.find_source_page(&place.scope, id.into(), number, admit).await?;
    json_of(&PageTextView::from(page))
}

async fn report(server: &Server, named: &str, id: &str) -> Result<Read, Problem> {
    let (place, id): (Place<ReportRead>, Uuid) = place(server, named, id).await?;
    let seen = server.api.app.find_report(&place.scope, id.into(), true).await?;
    Ok(Read { kind: MARKDOWN, text: seen.body.unwrap_or_default() })
}
