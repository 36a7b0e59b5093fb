//! The route table: no line without a guard.
//!
//! A line is `.at(guard, route!(handler))`. Method, path and documentation come from the handler's
//! `#[utoipa::path]`; the guard decides who gets through and is written into the document too.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, any_service};
use futures_util::future::BoxFuture;
use http::request::Parts;
use okt_model::Permission;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service};
use tower_http::normalize_path::NormalizePathLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::admission::{Guarded, LARGE_UPLOAD, Policy, Transfer, UPLOAD};
use crate::describe::describe;
use crate::edge::{Edge, Principal};
use crate::examples;
use crate::files::StaticFiles;
use crate::observe::{Meters, observe};
use crate::problem::{Code, Problem};
use crate::query::Queries;

/// How long a mounted service may send nothing of a stream: as long as any stream lives, because nothing is known of
/// what it waits for.
const MOUNTED_IDLE: Duration = Duration::from_mins(15);

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
    /// A key, or a client's token that is for MCP.
    Mcp,
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
            Self::Mcp => f.write_str("mcp"),
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
    /// None where every method is taken.
    pub method: Option<http::Method>,
    pub path: String,
    pub guard: Guard,
    /// Whether unknown query parameters are ignored instead of refused.
    pub any_query: bool,
    pub kind: LineKind,
}

/// What answers at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A handler, described in the document.
    Handler,
    /// A service that answers at and below its path, and is not described.
    Service,
    /// Static files at and below its path.
    Files,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = self.method.as_ref().map_or("any", http::Method::as_str);
        write!(f, "{method} {} — {}", self.path, self.guard)?;
        match self.kind {
            LineKind::Service => f.write_str(", service"),
            LineKind::Files => f.write_str(", files"),
            LineKind::Handler if self.any_query => f.write_str(", any query"),
            LineKind::Handler => Ok(()),
        }
    }
}

/// A table ready to be served: all lines behind all layers. Only a table can become one, so nothing can be served
/// that has no guard.
pub struct Served(pub(crate) BoxCloneSyncService<Request, Response, Infallible>);

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
        self.add(guard, Transfer::Plain, false, route)
    }

    /// As [`Self::at`], for what ignores unknown query parameters: OAuth's endpoints, which have to, and documents and
    /// pages, which are not harmed by any.
    #[must_use]
    pub fn at_any_query(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Plain, true, route)
    }

    /// As [`Self::at`], for a body of up to `server.limits.report_bytes`.
    #[must_use]
    pub fn at_long(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Long, false, route)
    }

    /// As [`Self::at`], for a handler that reads the body itself, piece by piece, by [`crate::Upload`].
    #[must_use]
    pub fn at_upload(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Upload { longest: UPLOAD }, false, route)
    }

    /// As [`Self::at_upload`], for a file that is as large as a bundle.
    #[must_use]
    pub fn at_large_upload(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Upload { longest: LARGE_UPLOAD }, false, route)
    }

    /// As [`Self::at`], for an answer that is made while it is read, however long that takes. It breaks off soon after
    /// the caller has lost the right to read it.
    #[must_use]
    pub fn at_download(self, guard: Guard, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Download, false, route)
    }

    /// As [`Self::at_download`], for `text/event-stream`. How many streams a caller may have open is in
    /// [`StreamRules`](crate::StreamRules); one that sends nothing for `idle` ends.
    #[must_use]
    pub fn at_stream(self, guard: Guard, idle: Duration, route: UtoipaMethodRouter<S>) -> Self {
        self.add(guard, Transfer::Stream { idle }, false, route)
    }

    /// Adds a service that answers at `path` and below it, whatever the method. Its requests are admitted and its
    /// answers sent as those of [`Self::at_stream`]; it sees the whole path, and in the extensions what the gate left
    /// there.
    #[must_use]
    pub fn mount<T>(mut self, guard: Guard, path: &str, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        let (transfer, service) = (Transfer::Stream { idle: MOUNTED_IDLE }, any_service(service));
        self.route(&format!("{path}/{{*rest}}"), guard, transfer, None, service.clone());
        self.route(path, guard, transfer, None, service);
        self.list(None, path, guard, LineKind::Service);
        self
    }

    /// Adds files for everybody at `path` and below it; empty for the root. Where there is neither a file nor another
    /// line, browsers get the entry page.
    #[must_use]
    pub fn files(mut self, path: &str, files: StaticFiles) -> Self {
        let (files, prefix): (_, Arc<str>) = (Arc::new(files), path.into());
        let at = if path.is_empty() { "/" } else { path };
        let below = format!("{path}/{{*path}}");
        for path in [at, &below] {
            let (files, prefix) = (Arc::clone(&files), Arc::clone(&prefix));
            let answer = move |request: Request| std::future::ready(files.answer(&prefix, &request));
            self.route(path, Guard::Public, Transfer::Files, None, any(answer));
        }
        self.list(Some(http::Method::GET), at, Guard::Public, LineKind::Files);
        self
    }

    fn add(
        mut self,
        guard: Guard,
        transfer: Transfer,
        any_query: bool,
        (schemas, mut paths, methods): UtoipaMethodRouter<S>,
    ) -> Self {
        let any_query = any_query || guard == Guard::Probe;
        let (path, queries) = describe(guard, any_query, &mut paths, &mut self.lines);
        self.route(&path, guard, transfer, (!any_query).then_some(queries), methods);
        self.openapi.paths.merge(paths);
        self.openapi.components.get_or_insert_default().schemas.extend(schemas);
        self
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that may add a route, because it adds the guard"
    )]
    fn route(
        &mut self,
        path: &str,
        guard: Guard,
        transfer: Transfer,
        queries: Option<Queries>,
        methods: MethodRouter<S>,
    ) {
        let (edge, gate) = (Arc::clone(&self.edge), self.gate.clone());
        let policy = Policy { edge, gate, guard, transfer, queries, meters: Meters::default() };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, methods.layer(Guarded(Arc::new(policy))));
    }

    /// Records a line that no document describes.
    fn list(&mut self, method: Option<http::Method>, path: &str, guard: Guard, kind: LineKind) {
        self.lines.push(Line { method, path: path.to_owned(), guard, any_query: true, kind });
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The document of all lines so far, with an example wherever one can be composed.
    pub fn openapi(&self) -> OpenApi {
        let mut document = self.openapi.clone();
        examples::compose(&mut document);
        document
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
