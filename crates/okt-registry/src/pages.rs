//! Pages for people who want to see what the registry has. They need no script.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, header};
use okt_http::{Path, Problem, Query};
use okt_model::Error;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::Registry;
use crate::sources::{SourcePath, names};
use crate::store::{self, SourceRow};

const ROWS: i64 = 50;
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'";
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ccc}\
    td{overflow-wrap:anywhere}input{font:inherit;width:60%}";

/// What somebody looks for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct BrowseQuery {
    /// The address or DOI of a source.
    #[param(example = "https://example.org/bees")]
    q: Option<String>,
    /// The source after which the list goes on.
    after: Option<Uuid>,
}

/// Browse the registry.
///
/// A page for people: sources as a list, or the one of an address or DOI.
#[utoipa::path(get, path = "/", tag = "Pages", operation_id = "browse", params(BrowseQuery),
    responses((status = 200, body = String, content_type = "text/html", description = "The page")))]
pub async fn browse(
    State(registry): State<Registry>,
    Query(query): Query<BrowseQuery>,
) -> Result<Response, Problem> {
    let mut conn = registry.acquire().await?;
    let wanted = query.q.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let mut body = format!(
        "<h1>Registry</h1><form action=/><label>Address or DOI <input name=q value=\"{}\"></label> <button>Look up</button></form>",
        escaped(wanted.unwrap_or_default())
    );
    let rows = match wanted {
        Some(text) => match names(Some(text), None, None) {
            Ok(names) => {
                store::find_source(&mut conn, &names).await.map_err(Error::from)?.into_iter().collect()
            }
            Err(_) => Vec::new(),
        },
        None => store::list_sources(&mut conn, query.after, ROWS).await.map_err(Error::from)?,
    };
    if rows.is_empty() {
        body.push_str("<p>Nothing is known of it.</p>");
    } else {
        body.push_str("<table><tr><th>Source<th>Address</tr>");
        for row in &rows {
            let _ = write!(
                body,
                "<tr><td><a href=\"/sources/{}\">{}</a><td>{}</tr>",
                row.id,
                escaped(title(row)),
                escaped(row.url.as_deref().unwrap_or_default())
            );
        }
        body.push_str("</table>");
    }
    if let Some(last) = rows.last().filter(|_| wanted.is_none() && i64::try_from(rows.len()) == Ok(ROWS)) {
        let _ = write!(body, "<p><a href=\"/?after={}\">More</a></p>", last.id);
    }
    Ok(page("Registry", &body))
}

/// Look at a source.
///
/// A page for people: what is known of it, and its packages.
#[utoipa::path(get, path = "/sources/{sid}", tag = "Pages", operation_id = "lookAtSource",
    params(("sid" = Uuid, Path, description = "The id of the source")),
    responses((status = 200, body = String, content_type = "text/html", description = "The page")))]
pub async fn source(
    State(registry): State<Registry>,
    Path(path): Path<SourcePath>,
) -> Result<Response, Problem> {
    let mut conn = registry.acquire().await?;
    let row = store::get_source(&mut conn, path.source).await.map_err(Error::from)?;
    let row = row.ok_or(Error::NotFound("source"))?;
    let packages = store::list_decompositions(&mut conn, row.id).await.map_err(Error::from)?;
    let mut body = format!("<p><a href=/>Registry</a></p><h1>{}</h1><table>", escaped(title(&row)));
    for (name, value) in
        [("Address", &row.url), ("DOI", &row.doi), ("Author", &row.author), ("Language", &row.language)]
    {
        if let Some(value) = value {
            let _ = write!(body, "<tr><th>{name}<td>{}</tr>", escaped(value));
        }
    }
    body.push_str("</table><h2>Packages</h2>");
    if packages.is_empty() {
        body.push_str("<p>There are none.</p>");
    } else {
        body.push_str("<table><tr><th>Model<th>Version<th>Facts<th>Concepts<th>Made<th>Pushed by</tr>");
        for package in &packages {
            let _ = write!(
                body,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
                escaped(&package.model_id),
                package.version,
                package.fact_count,
                package.concept_count,
                package.decomposed_at.date_naive(),
                escaped(&package.pushed_by)
            );
        }
        body.push_str("</table>");
    }
    Ok(page(title(&row), &body))
}

fn title(row: &SourceRow) -> &str {
    row.title.as_deref().or(row.url.as_deref()).or(row.doi.as_deref()).unwrap_or("A source without a title")
}

fn page(title: &str, body: &str) -> Response {
    let title = escaped(title);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><main>{body}</main>"
    );
    let mut response = Html(html).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Strangers wrote it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
