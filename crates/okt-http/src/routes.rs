//! The route table: no line without a guard.
//!
//! A line is `.at(guard, route!(handler))`. Method, path and documentation come from the handler's
//! `#[utoipa::path]`; the guard decides who gets through and is written into the document too.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::request::Parts;
use okt_model::Permission;
use tower::Layer;
use tower::util::BoxCloneSyncService;
use tower_http::normalize_path::NormalizePathLayer;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, ParameterIn, Paths};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, OpenApi, Ref, RefOr};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::edge::{Door, Edge, Guarded, Principal};
use crate::observe::{Meters, observe};
use crate::problem::{Code, Problem};

/// Who may pass a line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// For orchestrators: open, never shed, never rate-limited. Answers must be cheap and say nothing private.
    Probe,
    /// Open to everybody.
    Public,
    /// Any valid credential.
    Authenticated,
    /// A person's session: a key must not do this, because with it a stolen key could be made permanent.
    Session,
    /// A valid credential that holds this permission, in the repository of the path where there is one.
    Needs(Permission),
}

impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Probe => f.write_str("probe"),
            Self::Public => f.write_str("public"),
            Self::Authenticated => f.write_str("authenticated"),
            Self::Session => f.write_str("session"),
            Self::Needs(permission) => write!(f, "needs {permission}"),
        }
    }
}

/// Decides whether a request may pass a guard.
pub trait Gate: Clone + Send + Sync + 'static {
    /// Who the request is counted against, or `None` for an anonymous one that may pass. What handlers need to know
    /// about the caller goes into the extensions of `parts`.
    fn admit(
        &self,
        guard: Guard,
        parts: &mut Parts,
    ) -> impl Future<Output = Result<Option<Principal>, Problem>> + Send;
}

/// One line of the table, as data.
#[derive(Clone, Debug)]
pub struct Line {
    pub method: http::Method,
    pub path: String,
    pub guard: Guard,
}

/// A table ready to be served: all lines behind all layers. Only a table can become one, so nothing can be served
/// that has no guard.
pub struct Served(pub(crate) BoxCloneSyncService<Request, Response, std::convert::Infallible>);

pub struct Routes<S> {
    router: Router<S>,
    edge: Arc<Edge>,
    gate: S,
    lines: Vec<Line>,
    openapi: OpenApi,
}

impl<S: Gate> Routes<S> {
    /// `document` carries the title and the shared components; lines add their paths to it.
    pub fn new(gate: S, edge: Arc<Edge>, document: OpenApi) -> Self {
        Self { router: Router::new(), edge, gate, lines: Vec::new(), openapi: document }
    }

    /// Adds a line. There is no other way to serve anything, and this one asks for the guard.
    #[must_use]
    pub fn at(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, false, route)
    }

    /// As [`Self::at`], for a handler that reads the body itself, piece by piece, by [`crate::Upload`].
    #[must_use]
    pub fn at_streaming(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, true, route)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that may add a route, because it adds the guard"
    )]
    fn add(
        mut self,
        guard: Guard,
        streams: bool,
        (schemas, mut paths, methods): UtoipaMethodRouter<S>,
    ) -> Self {
        let path = document(guard, &mut paths, &mut self.lines);
        let (edge, gate) = (Arc::clone(&self.edge), self.gate.clone());
        let door = Door { edge, gate, guard, streams, meters: Meters::default() };
        self.router = self.router.route(&path, methods.layer(Guarded(Arc::new(door))));
        self.openapi.paths.merge(paths);
        self.openapi.components.get_or_insert_default().schemas.extend(schemas);
        self
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub const fn openapi(&self) -> &OpenApi {
        &self.openapi
    }

    /// Puts the layers around the table.
    pub fn into_service(self) -> Served {
        let nothing = refusal(&self.edge, Code::NotFound, "there is nothing at this address");
        let not_so =
            refusal(&self.edge, Code::MethodNotAllowed, "the address exists, but not with this method");
        let router = self.router.fallback(nothing).method_not_allowed_fallback(not_so).with_state(self.gate);
        // Outside of the router, because a layer inside of it runs only after the path was matched.
        let trimmed = NormalizePathLayer::trim_trailing_slash().layer(router);
        Served(BoxCloneSyncService::new(trimmed))
    }
}

/// What is said where no line of the table answers.
fn refusal(
    edge: &Arc<Edge>,
    code: Code,
    detail: &'static str,
) -> impl Fn(Request) -> BoxFuture<'static, Response> + Clone + Send + Sync + 'static {
    let (edge, meters) = (Arc::clone(edge), Arc::<Meters>::default());
    move |request| {
        let (edge, meters) = (Arc::clone(&edge), Arc::clone(&meters));
        let answer = move |_| async move { Problem::new(code, detail).into_response() };
        Box::pin(async move { observe(&edge, &meters, request, answer).await })
    }
}

/// Completes the documentation of the line's operations and records them; returns the line's path.
fn document(guard: Guard, paths: &mut Paths, lines: &mut Vec<Line>) -> String {
    let mut found = None;
    for (path, item) in &mut paths.paths {
        let operations = [
            (http::Method::GET, &mut item.get),
            (http::Method::PUT, &mut item.put),
            (http::Method::POST, &mut item.post),
            (http::Method::DELETE, &mut item.delete),
            (http::Method::PATCH, &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            operation.operation_id = Some(operation_id(&method, path));
            complete(guard, operation);
            lines.push(Line { method, path: path.clone(), guard });
        }
        found = Some(path.clone());
    }
    found.expect("a handler with #[utoipa::path] has a path")
}

/// Unique, because method and path are: `get_users_userID`. A handler's own name is not: many are called `show`.
fn operation_id(method: &http::Method, path: &str) -> String {
    let words = path.trim_start_matches("/api/v1").split(|c: char| !c.is_ascii_alphanumeric());
    let method = method.as_str().to_lowercase();
    words.filter(|word| !word.is_empty()).fold(method, |id, word| format!("{id}_{word}"))
}

/// What the edge itself may answer, the same for every line with this guard and this kind of input.
fn complete(guard: Guard, operation: &mut Operation) {
    let mut codes = vec![Code::Malformed, Code::UriTooLong, Code::Internal, Code::TimedOut];
    if guard != Guard::Probe {
        codes.extend([Code::RateLimited, Code::Overloaded]);
    }
    match guard {
        Guard::Probe | Guard::Public => {}
        Guard::Authenticated => codes.push(Code::Unauthenticated),
        Guard::Session => codes.extend([Code::Unauthenticated, Code::Forbidden]),
        Guard::Needs(_) => codes.extend([Code::Unauthenticated, Code::Forbidden, Code::NotFound]),
    }
    if operation.request_body.is_some() {
        codes.extend([Code::BodyTooSlow, Code::TooLarge, Code::UnsupportedMediaType, Code::Invalid]);
    }
    for parameter in operation.parameters.iter().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        codes.push(if parameter.parameter_in == ParameterIn::Path { Code::NotFound } else { Code::Invalid });
    }
    for code in codes {
        let status = code.status().as_u16().to_string();
        let told = operation.responses.responses.entry(status);
        let told = told.or_insert_with(|| RefOr::T(problem_response(code.status())));
        // A route with refusals in a form of its own is still refused by the edge in ours.
        if let RefOr::T(told) = told {
            let content = || RefOr::T(Content::new(Some(Ref::from_schema_name("Problem"))));
            told.content.entry(PROBLEM_TYPE.to_owned()).or_insert_with(content);
        }
    }
    let open = matches!(guard, Guard::Probe | Guard::Public);
    operation.security = Some(if open { vec![] } else { vec![SecurityRequirement::new("bearer", [""; 0])] });
    let extensions = operation.extensions.get_or_insert_with(Extensions::default);
    extensions.insert("x-guard".to_owned(), guard.to_string().into());
}

const PROBLEM_TYPE: &str = "application/problem+json";

/// A refusal with this status, for the document.
pub fn problem_response(status: StatusCode) -> utoipa::openapi::Response {
    let codes: Vec<_> = Code::ALL.iter().filter(|code| code.status() == status).map(|c| c.as_str()).collect();
    ResponseBuilder::new()
        .description(format!("Problem: {}", codes.join(", ")))
        .content(PROBLEM_TYPE, Content::new(Some(Ref::from_schema_name("Problem"))))
        .build()
}
