//! `Idempotency-Key`: a request that arrives twice counts once.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use okt_app::{Answer, App, Claimed, Once};
use okt_http::{Code, Edge, Principal, Problem};
use okt_model::Error;
use utoipa::openapi::Required;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa_axum::router::UtoipaMethodRouter;

const HEADER: &str = "idempotency-key";

/// Wraps a route that creates or enqueues: with the same key and body the first answer comes again for 24 hours.
/// The guard of the line must let only known callers through, because keys are counted per caller.
pub fn once<S: Clone + Send + Sync + 'static>(
    app: &App,
    route: UtoipaMethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    let (schemas, mut paths, methods) = route;
    for item in paths.paths.values_mut() {
        let Some(operation) = &mut item.post else { continue };
        let about = "Up to 255 visible ASCII characters; the same key and body get the first answer again";
        let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(255));
        let parameter = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(about))
            .schema(Some(text))
            .build();
        operation.parameters.get_or_insert_default().push(parameter.into());
    }
    (schemas, paths, methods.layer(from_fn_with_state(app.clone(), answer_once)))
}

async fn answer_once(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    let Some(key) = key_of(request.headers())? else { return Ok(next.run(request).await) };
    let principal = request.extensions().get::<Principal>().cloned();
    let principal =
        principal.ok_or_else(|| Error::internal("a route with an Idempotency-Key has a public guard"))?;
    let target =
        format!("{} {}", request.method(), request.uri().path_and_query().map_or("/", |text| text.as_str()));

    // The body is part of what the key stands for. The edge has read it already.
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map_err(Error::internal)?.to_bytes();
    let request = Request::from_parts(parts, bytes.clone().into());

    let claimed = match app.claim_once(&principal.credential, &key, &target, &bytes).await? {
        Once::Run(claimed) => claimed,
        Once::Again(answer) => return Ok(replay(answer)),
        Once::InFlight => {
            let detail = "the first request with this Idempotency-Key has not finished";
            return Err(Problem::new(Code::IdempotencyInFlight, detail).retry_after(1));
        }
        Once::Lost => {
            let detail = "the first request with this Idempotency-Key ended without an answer";
            return Err(Problem::new(Code::IdempotencyLost, detail));
        }
        Once::Mismatch => {
            let detail = "this Idempotency-Key was used for another request within 24 hours";
            return Err(Problem::new(Code::IdempotencyMismatch, detail));
        }
    };

    // A client that hangs up cancels what runs in its connection, and the effect would be there without its answer.
    let detached = Edge::detach(&request);
    let work = detached.spawn(run_and_keep(app, claimed, request, next));
    work.await.map_err(|error| Error::Internal(Box::new(error)))?
}

/// Every answer is kept, a failure of ours too: it may have come after the change, and the same key must not do it again.
async fn run_and_keep(app: App, claimed: Claimed, request: Request, next: Next) -> Result<Response, Problem> {
    // Bounded like every request, so that it has ended before its claim counts as lost.
    let limit = app.config().server.write_timeout.duration();
    let ran = AssertUnwindSafe(tokio::time::timeout(limit, next.run(request))).catch_unwind().await;
    let response = match ran {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Problem::timed_out(limit).into_response(),
        Err(_) => Problem::new(Code::Internal, "internal error").into_response(),
    };
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    // Too many requests is the one refusal that says that nothing was done and that asking again is right.
    if parts.status == StatusCode::TOO_MANY_REQUESTS {
        app.release_once(&claimed).await?;
        return Ok(Response::from_parts(parts, body.into()));
    }
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let answer = Answer {
        status: parts.status.as_u16(),
        content_type: text(header::CONTENT_TYPE),
        location: text(header::LOCATION),
        body: body.to_vec(),
    };
    // Whoever waits hears what happened, even when the answer could not be kept for a second asking.
    if let Err(error) = app.finish_once(&claimed, answer).await {
        tracing::error!(error = &error as &dyn std::error::Error, "an idempotent answer was not kept");
    }
    Ok(Response::from_parts(parts, body.into()))
}

fn replay(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    let kept = [(header::CONTENT_TYPE, answer.content_type), (header::LOCATION, answer.location)];
    for (name, value) in kept {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

/// The key of a request, if it has one.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all(HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        // Which of them counts would be a guess, and the wrong one runs the request twice.
        return Err(Problem::new(
            Code::Malformed,
            "the request has more than one Idempotency-Key header; send one",
        ));
    }
    readable(key).map(Some)
}

fn readable(key: &HeaderValue) -> Result<String, Problem> {
    let text = key.to_str().ok().filter(|text| (1..=255).contains(&text.len()));
    let text =
        text.ok_or_else(|| Error::invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters"))?;
    Ok(text.to_owned())
}
