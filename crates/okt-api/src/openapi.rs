//! The OpenAPI 3.1 document: made from the table, so that it can't speak of a route that does not exist.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use okt_http::{Code, Problem, ProblemBody, Routes};
use okt_model::Error;
use okt_wire::vocabulary;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::{Api, docs, web};

/// What the document begins with: getting started, and credentials.
const ABOUT: &str = include_str!("../templates/about.md");

/// The document and the page, rendered once; answers share them.
pub(crate) struct Documents {
    pub(crate) json: Bytes,
    pub(crate) page: Bytes,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "okt",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The installation that you read this on")),
    // In the order in which somebody new needs them; the page of the documentation keeps it.
    tags(
        (name = "Accounts", description = "Registering, signing in and out, profiles, and what one may do."),
        (name = "API keys", description = "Credentials for programs that act for you."),
        (name = "Repositories", description = "The boundary between tenants: everything below belongs to one."),
        (name = "Members", description = "Who has which role in a repository."),
        (name = "Sources", description = "What knowledge rests on: pages, papers and files, on their way from an address to \
            facts."),
        (name = "Facts", description = "What the sources say, each traceable to the sentences that it rests on."),
        (name = "Investigations", description = "Sources that belong to one question, what they say, how far they are and what they \
            cost."),
        (name = "Reports", description = "What somebody wrote, checked sentence by sentence against the facts, and again whenever \
            facts change."),
        (name = "Search", description = "Finding facts, concepts, sources and passages by words and by meaning."),
        (name = "Answers", description = "Questions answered from the facts, each sentence checked before it is shown."),
        (name = "Concepts", description = "What the facts speak of, and the graph that concepts make by sharing facts."),
        (name = "Graph bundles", description = "A repository as one file that another instance can import."),
        (name = "Exports", description = "What leaves a repository in the formats of other programs."),
        (name = "Curation", description = "What people decide about concepts and facts. Every step is recorded, can be undone, and \
            is respected by later jobs."),
        (name = "Jobs", description = "What runs in the background, what waits and why, as a list and as events."),
        (name = "Webhooks", description = "Other services that are told what has happened."),
        (name = "Settings", description = "What a repository does with its sources, and what it may spend."),
        (name = "Contexts", description = "What the concepts of a repository are filed under."),
        (name = "Promptsets", description = "The instructions that models get."),
        (name = "AI usage", description = "What models were used for, and what it cost."),
        (name = "MCP", description = "For agents: the same knowledge as tools of the Model Context Protocol."),
        (name = "Administration", description = "For those who run the installation: users, roles, audit."),
        (name = "Operations", description = "For orchestrators and monitors."),
        (name = "Documentation", description = "This document, for programs and for people."),
        (name = "OAuth", description = "For programs that ask a person for access (OAuth 2.1)."),
        (name = "Discovery", description = "Where OAuth clients find out about the rest (RFC 8414, RFC 9728)."),
    ),
    components(schemas(ProblemBody))
)]
struct Document;

/// Introduction, errors and shared components; the table adds the rest.
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.description = Some(ABOUT.to_owned());
    document.extensions.get_or_insert_default().insert("x-problems".to_owned(), docs::problems());
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some("Session token, OAuth access token or personal API key".to_owned());
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.schemas.extend(vocabulary::schema::all());
    document
}

/// Renders the documents of a complete table, for its own routes to show.
pub fn finish(api: &Api, routes: &Routes<Api>) -> Result<(), Error> {
    let document = routes.openapi();
    let json = serde_json::to_string_pretty(&document).map_err(Error::internal)?;
    let page = web::documentation(api.app.config().oauth.issuer.as_ref());
    api.documents
        .set(Documents { json: json.into(), page })
        .map_err(|_| Error::internal("the documents were rendered twice"))
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "Documentation",
    operation_id = "getOpenApi",
    responses((status = 200, body = Object, description = "OpenAPI 3.1", example = json!({"openapi": "3.1.0"}))))]
pub async fn show(State(api): State<Api>) -> Result<Response, Problem> {
    let documents = rendered(&api)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], documents.json.clone()).into_response())
}

pub(crate) fn rendered(api: &Api) -> Result<&Documents, Problem> {
    api.documents.get().ok_or_else(|| Problem::new(Code::Unavailable, "the service is still starting"))
}
