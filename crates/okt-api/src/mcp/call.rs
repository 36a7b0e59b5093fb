//! What a tool is given: who calls, with which arguments, and the way to a repository.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header;
use okt_app::{Answer, Claimed, Once, Origin};
use okt_auth::{Caller, Needed, RepoScope};
use okt_http::{Budget, Code, Detached, Json, PageRequest, Problem};
use okt_model::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::tools::Tool;
use super::tools::progress::Watch;
use crate::Api;
use crate::extract::principal;

/// What an agent reads of one answer; more would be cut off by its client.
const MOST_CHARACTERS: usize = 60_000;
const USUAL_ROWS: u32 = 10;
const MOST_ROWS: u32 = 50;
/// How many repositories an error names.
const NAMED: i64 = 20;
const LONGEST_CURSOR: usize = 2_000;

/// Who calls, and where we are.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// What large texts are counted against.
    pub(super) budget: Budget,
    pub(super) origin: Origin,
    /// What addresses of pages begin with; empty where nobody has said how this service is called.
    pub(super) base: String,
}

pub(super) struct Call {
    pub(super) server: Server,
    tool: &'static Tool,
    arguments: Value,
    most_rows: u32,
}

/// What came of a call.
pub(super) enum Outcome {
    Done(Value),
    /// It was begun, and its caller wants to wait.
    Wait(Box<Watch>),
}

/// A repository that the caller may do `P` in.
pub(super) struct Place<P> {
    pub(super) scope: RepoScope<P>,
    /// As it was named.
    pub(super) slug: String,
    /// The address of its pages.
    address: String,
}

impl<P> Place<P> {
    /// The page of something in it: `facts`, `concepts`, `sources`, `reports` or `investigations`.
    pub(super) fn url(&self, kind: &str, id: impl std::fmt::Display) -> String {
        format!("{}/{kind}/{id}", self.address)
    }

    /// For what needs another permission as well.
    pub(super) fn also<Q: Needed>(&self) -> Result<Place<Q>, Problem> {
        let (slug, address) = (self.slug.clone(), self.address.clone());
        Ok(Place { scope: self.scope.also::<Q>()?, slug, address })
    }
}

/// The result of a tool.
pub(super) fn done(result: impl Serialize) -> Result<Outcome, Problem> {
    Ok(Outcome::Done(serde_json::to_value(result).map_err(Error::internal)?))
}

impl Call {
    pub(super) fn new(server: Server, tool: &'static Tool, arguments: Value) -> Self {
        Self { server, tool, arguments, most_rows: MOST_ROWS }
    }

    /// Runs the tool; with a key only once, and the first result comes again.
    pub(super) async fn run(
        self: &Arc<Self>,
        key: Option<&str>,
        detached: Detached,
    ) -> Result<Outcome, Problem> {
        let Some(key) = key.filter(|_| self.tool.creates) else { return self.run_within_bounds().await };
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(
                Error::invalid("okt/idempotency_key", "must be 1 to 255 visible ASCII characters").into()
            );
        }
        let (app, target) = (&self.server.api.app, format!("tools/call {}", self.tool.name));
        let body = serde_json::to_vec(&self.arguments).map_err(Error::internal)?;
        let credential = principal(&self.server.caller).credential;
        let claimed = match app.claim_once(&credential, key, &target, &body).await? {
            Once::Run(claimed) => claimed,
            Once::Again(answer) => {
                return Ok(Outcome::Done(serde_json::from_slice(&answer.body).map_err(Error::internal)?));
            }
            Once::InFlight => {
                let detail = "the first call with this key has not finished";
                return Err(Problem::new(Code::IdempotencyInFlight, detail).retry_after(1));
            }
            Once::Lost => {
                let detail = "the first call with this key ended without a result";
                return Err(Problem::new(Code::IdempotencyLost, detail));
            }
            Once::Mismatch => {
                let detail = "this key was used for another call within 24 hours";
                return Err(Problem::new(Code::IdempotencyMismatch, detail));
            }
        };
        // A client that hangs up cancels what runs in its connection, and the effect would be there without its result.
        let call = Arc::clone(self);
        let work = detached.spawn(async move { call.run_and_keep(claimed).await });
        work.await.map_err(|error| Problem::from(Error::internal(error)))?
    }

    async fn run_and_keep(&self, claimed: Claimed) -> Result<Outcome, Problem> {
        let app = &self.server.api.app;
        let outcome = self.run_within_bounds().await;
        let kept = match &outcome {
            Ok(Outcome::Done(value)) => Some(value),
            // What was begun is known; how far it is can be asked for.
            Ok(Outcome::Wait(watch)) => watch.known(),
            Err(_) => None,
        };
        match (kept, &outcome) {
            (Some(value), _) => {
                let body = serde_json::to_vec(value).map_err(Error::internal)?;
                let answer = Answer { status: 200, content_type: None, location: None, body };
                // Whoever waits hears what happened, even when the result could not be kept for a second asking.
                if let Err(error) = app.finish_once(&claimed, answer).await {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the result of a tool was not kept"
                    );
                }
            }
            // Of a refusal nothing came. A failure of ours may have come after the change, and the same key must not do it again.
            (None, Err(problem)) if problem.code().status().is_client_error() => {
                app.release_once(&claimed).await?;
            }
            (None, _) => {}
        }
        outcome
    }

    /// With fewer rows where the result would be too long to be read.
    async fn run_within_bounds(&self) -> Result<Outcome, Problem> {
        let outcome = (self.tool.run)(self).await?;
        let Outcome::Done(mut value) = outcome else { return Ok(outcome) };
        let mut most_rows = self.most_rows;
        while value.to_string().chars().count() > MOST_CHARACTERS && self.tool.pages && most_rows > 1 {
            most_rows = (most_rows.min(self.asked_rows()) / 2).max(1);
            let (server, arguments) = (self.server.clone(), self.arguments.clone());
            let shorter = Self { server, tool: self.tool, arguments, most_rows };
            let Outcome::Done(shorter) = (self.tool.run)(&shorter).await? else { break };
            value = shorter;
            value["truncated"] = true.into();
        }
        Ok(Outcome::Done(value))
    }

    fn asked_rows(&self) -> u32 {
        self.arguments["limit"].as_u64().and_then(|limit| limit.try_into().ok()).unwrap_or(USUAL_ROWS)
    }

    /// The arguments as `T`; what is wrong with them is told as of the body of a request.
    pub(super) async fn arguments<T: DeserializeOwned + ToSchema>(&self) -> Result<T, Problem> {
        let body = serde_json::to_vec(&self.arguments).map_err(Error::internal)?;
        let request = http::Request::builder()
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(Error::internal)?;
        Ok(Json::<T>::from_request(request, &()).await?.0)
    }

    /// How many rows are asked for.
    pub(super) fn rows(&self, limit: Option<u32>) -> Result<u32, Problem> {
        let limit = limit.unwrap_or(USUAL_ROWS);
        if !(1..=MOST_ROWS).contains(&limit) {
            return Err(Error::invalid("limit", "must be a whole number from 1 to 50").into());
        }
        Ok(limit.min(self.most_rows))
    }

    /// Of rows that nobody asks for by number.
    pub(super) fn at_most(&self, rows: u32) -> u32 {
        rows.min(self.most_rows)
    }

    /// The page that is asked for. A cursor goes with the tool and all other arguments.
    pub(super) async fn page(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<PageRequest, Problem> {
        let mut question = self.arguments.clone();
        if let Value::Object(question) = &mut question {
            question.retain(|name, value| !value.is_null() && !["limit", "cursor"].contains(&name.as_str()));
        }
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(question.to_string()));
        self.server.page(&format!("{}/{digest}", self.tool.name), self.rows(limit)?, cursor).await
    }

    /// The repository that is named, or the only one that the caller can see.
    pub(super) async fn repository<P: Needed>(&self, named: Option<&str>) -> Result<Place<P>, Problem> {
        let Server { api, caller, .. } = &self.server;
        if let Some(named) = named {
            return self.place(named).await;
        }
        let (found, more) = api.app.list_repositories(caller, None, NAMED).await?;
        match found.as_slice() {
            [only] if more.is_none() => self.place(&only.repository.slug).await,
            [] => Err(Error::NotFound("repository").into()),
            several => {
                let slugs: Vec<_> = several.iter().map(|seen| seen.repository.slug.as_str()).collect();
                let rest = if more.is_some() { " and others; see list_repositories" } else { "" };
                Err(Error::invalid("repository", format!("name one of {}{rest}", slugs.join(", "))).into())
            }
        }
    }

    pub(super) async fn place<P: Needed>(&self, named: &str) -> Result<Place<P>, Problem> {
        self.server.place(named).await
    }
}

impl Server {
    /// A page of a list; its cursors are good for this list alone.
    pub(super) async fn page(
        &self,
        list: &str,
        rows: u32,
        cursor: Option<&str>,
    ) -> Result<PageRequest, Problem> {
        let mut path = format!("/mcp/{list}?limit={rows}");
        if let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) {
            if cursor.len() > LONGEST_CURSOR {
                return Err(Problem::new(Code::BadCursor, "the cursor does not belong to this list"));
            }
            path.push_str("&cursor=");
            path.extend(url::form_urlencoded::byte_serialize(cursor.as_bytes()));
        }
        let request = http::Request::builder().uri(path);
        let (mut parts, ()) = request.body(()).map_err(Error::internal)?.into_parts();
        parts.extensions.insert(self.api.edge());
        PageRequest::from_request_parts(&mut parts, &()).await
    }

    /// A repository by its id or slug.
    pub(super) async fn place<P: Needed>(&self, named: &str) -> Result<Place<P>, Problem> {
        let Self { api, caller, origin, base, .. } = self;
        let (proof, located) = api.prove(caller, P::PERMISSION, Some(named), origin).await?;
        let located = located.ok_or_else(|| Error::internal("a repository that is nowhere"))?;
        Ok(Place {
            scope: proof.into_repository(located)?,
            slug: named.to_owned(),
            address: format!("{base}/r/{named}"),
        })
    }
}
