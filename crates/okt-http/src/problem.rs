//! Refusals as RFC 9457 problems. One line per code; the list is printed into `docs/ERRORS.md`.

use std::borrow::Cow;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use okt_model::{Cause, Error, FieldError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::observe;
use crate::rate::Allowance;

/// Declares every code once: name on the wire, status, title, and what a caller should do about it.
macro_rules! codes {
    ($($variant:ident = $code:literal, $status:ident, $title:literal, $advice:literal;)+) => {
        /// A stable reason for a refusal. A code is never renamed and never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),+ }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// What the caller can do now.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice),+ }
            }
        }
    };
}

codes! {
    Malformed = "malformed", BAD_REQUEST, "Malformed request",
        "Send well-formed JSON, query and path values; `detail` says where reading stopped.";
    BadCursor = "bad_cursor", BAD_REQUEST, "Cursor not valid here",
        "Use `next_cursor` exactly as returned, with the same path and filters, or start again without one.";
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Credential missing or not valid",
        "Send `Authorization: Bearer …` with a live session token, access token or API key.";
    Forbidden = "forbidden", FORBIDDEN, "Permission missing",
        "Ask an administrator of the repository for the permission that `detail` names.";
    RegistrationClosed = "registration_closed", FORBIDDEN, "Registration is closed",
        "`detail` says who makes accounts on this installation; ask them for one or for an invitation.";
    SetupCodeNeeded = "setup_code_needed", FORBIDDEN, "Setup code missing or wrong",
        "Send the code that the service wrote to its log when it started as `setup_code`.";
    NotFound = "not_found", NOT_FOUND, "Not found",
        "Check the address; a repository you may not read answers like one that does not exist.";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed",
        "Use one of the methods in the `Allow` header.";
    BodyTooSlow = "body_too_slow", REQUEST_TIMEOUT, "Body arrived too slowly",
        "Send the request again; the whole body has to arrive in time, and a file at 1 KiB a second at least.";
    AlreadyExists = "already_exists", CONFLICT, "Already exists",
        "Use the existing one or choose another name.";
    Conflict = "conflict", CONFLICT, "Not possible as things are",
        "Do what `detail` asks for first.";
    InUse = "in_use", CONFLICT, "Still in use",
        "`detail` says by how many, and what to do with them first.";
    QuotaExceeded = "quota_exceeded", CONFLICT, "No more than this",
        "`detail` says how much there is, how much there may be, and which setting says so. Delete some, or ask the operator.";
    IdempotencyInFlight = "idempotency_in_flight", CONFLICT, "Same request still running",
        "The first request with this Idempotency-Key has not finished; ask again after `Retry-After` seconds.";
    IdempotencyLost = "idempotency_lost", CONFLICT, "Outcome of the first request unknown",
        "The process that ran it ended before it answered. Look whether it was done; if not, use a fresh Idempotency-Key.";
    TooLarge = "too_large", PAYLOAD_TOO_LARGE, "Body too large",
        "Send a smaller body; `detail` names the limit.";
    UriTooLong = "uri_too_long", URI_TOO_LONG, "Address too long",
        "Shorten the query; `detail` names the limit.";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Wrong media type",
        "Send `Content-Type: application/json`, or a form where `detail` asks for one.";
    BadRange = "bad_range", RANGE_NOT_SATISFIABLE, "No such part",
        "Ask for a part within the size that `detail` names, or for everything.";
    Invalid = "invalid", UNPROCESSABLE_ENTITY, "Failed validation",
        "Correct the fields listed in `errors`.";
    IdempotencyMismatch = "idempotency_mismatch", UNPROCESSABLE_ENTITY, "Idempotency-Key used for another request",
        "Use a fresh Idempotency-Key for every different request.";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests",
        "Wait for `Retry-After` seconds.";
    TooManyAnswers = "too_many_answers", TOO_MANY_REQUESTS, "Too many answers on their way",
        "Wait until one of them is done, or cancel one; `detail` says how many there may be.";
    AskLimit = "ask_limit", TOO_MANY_REQUESTS, "Spent for today",
        "Ask with mode extractive or auto, wait for the next day (UTC), or ask an administrator of the repository for more.";
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error",
        "A fault of ours; report it with `request_id`.";
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Something we need does not answer",
        "Try again after `Retry-After` seconds; when the request creates something, look first whether it was done.";
    NotConfigured = "not_configured", SERVICE_UNAVAILABLE, "Not set up here",
        "Ask the operator of this installation for the setting that `detail` names.";
    RepositoryMoving = "repository_moving", SERVICE_UNAVAILABLE, "Repository is being moved",
        "Nothing was done. Reading works meanwhile; try again after `Retry-After` seconds.";
    StorageFull = "storage_full", INSUFFICIENT_STORAGE, "File storage full",
        "Nothing was kept. Tell the operator of this installation; the same request works once there is space.";
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Too busy right now",
        "Nothing was done; try again after `Retry-After` seconds.";
    TimedOut = "timed_out", SERVICE_UNAVAILABLE, "Took too long",
        "It may still have been done. Look before you send it again.";
}

/// A refusal on its way out.
#[derive(Debug)]
pub struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    retry_after: Option<u64>,
    /// The limit that was reached.
    allowance: Option<Box<Allowance>>,
    /// What `WWW-Authenticate` says, where it says more than `Bearer`.
    challenge: Option<Box<str>>,
    cause: Option<Cause>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let passes = code.status() == StatusCode::SERVICE_UNAVAILABLE && code != Code::NotConfigured;
        let retry_after = passes.then_some(1);
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after,
            allowance: None,
            challenge: None,
            cause: None,
        }
    }

    /// Nothing came back within the time a request has.
    pub fn timed_out(limit: Duration) -> Self {
        Self::new(Code::TimedOut, format!("no answer within {} s", limit.as_secs_f32()))
    }

    /// The same with another detail.
    #[must_use]
    pub fn saying(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    #[must_use]
    pub(crate) fn limited(mut self, allowance: Allowance) -> Self {
        self.allowance = Some(Box::new(allowance));
        self.retry_after(allowance.wait)
    }

    /// Says how to get a credential that would do.
    #[must_use]
    pub fn challenge(mut self, challenge: String) -> Self {
        self.challenge = Some(challenge.into());
        self
    }

    #[must_use]
    fn caused_by(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    pub const fn code(&self) -> Code {
        self.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// After how many seconds it is worth trying again.
    pub const fn retry_after_s(&self) -> Option<u64> {
        self.retry_after
    }

    /// Writes a failure of ours into the log; whoever answers with a problem in another form than its own has to.
    pub fn log(&self) {
        if !self.code.status().is_server_error() {
            return;
        }
        let cause = self.cause.as_ref().map(|cause| chain(cause.as_ref()));
        match self.code {
            // Shedding is a decision, counted in metrics; a log line for each would add to the load.
            // And what is not set up is nobody's failure.
            Code::Overloaded | Code::NotConfigured | Code::RepositoryMoving => {}
            code => tracing::error!(code = code.as_str(), detail = %self.detail, cause, "request failed"),
        }
    }

    /// The fields that failed validation.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }
}

/// Also of what becomes the one error type, such as an error of the database.
impl<E: Into<Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::of(error.into())
    }
}

impl Problem {
    fn of(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::NotFound(_) => Self::new(Code::NotFound, detail),
            Error::AlreadyExists(_) => Self::new(Code::AlreadyExists, detail),
            Error::Conflict(_) | Error::UndoFirst(_) => Self::new(Code::Conflict, detail),
            Error::InUse { .. } => Self::new(Code::InUse, detail),
            Error::QuotaExceeded { .. } => Self::new(Code::QuotaExceeded, detail),
            Error::Unauthenticated(_) => Self::new(Code::Unauthenticated, detail),
            Error::Forbidden(_) => Self::new(Code::Forbidden, detail),
            Error::RegistrationClosed(_) => Self::new(Code::RegistrationClosed, detail),
            Error::SetupCodeNeeded(_) => Self::new(Code::SetupCodeNeeded, detail),
            Error::Invalid(errors) => Self { errors, ..Self::new(Code::Invalid, detail) },
            Error::Overloaded(_) => Self::new(Code::Overloaded, detail),
            Error::TooManyAnswers(_) => Self::new(Code::TooManyAnswers, detail).retry_after(5),
            Error::AskLimit(_) => Self::new(Code::AskLimit, detail).retry_after(3_600),
            Error::StorageFull => Self::new(Code::StorageFull, detail),
            Error::Moving => Self::new(Code::RepositoryMoving, detail).retry_after(10),
            Error::NotConfigured(_) => Self::new(Code::NotConfigured, detail),
            Error::Unavailable { cause, .. } => Self::new(Code::Unavailable, detail).caused_by(cause),
            Error::Operator(message) => Self::new(Code::Internal, "internal error").caused_by(message.into()),
            Error::Internal(cause) => Self::new(Code::Internal, detail).caused_by(cause),
        }
    }
}

/// The body of every refusal: `application/problem+json` (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Where this kind of problem is explained.
    #[schema(example = "/api/docs#problem-not_found")]
    r#type: String,
    /// What `code` means, in words.
    #[schema(example = "Not found")]
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 404, minimum = 400, maximum = 599)]
    status: u16,
    /// What happened this time, in words.
    #[schema(example = "repository not found")]
    detail: String,
    /// Stable, for programs.
    #[schema(example = "not_found")]
    code: &'static str,
    /// Also in the `X-Request-Id` header and in our logs.
    #[schema(example = "0195509d-4a40-7d11-9c55-1f2e3d4c5b6a")]
    request_id: String,
    /// The fields that failed validation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FieldProblem>,
}

/// One field that failed validation.
#[derive(Serialize, ToSchema)]
struct FieldProblem {
    /// Its name, or the path to it.
    #[schema(example = "email")]
    field: String,
    /// What is wrong with it.
    #[schema(example = "must be an e-mail address")]
    message: String,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        self.log();
        let body = ProblemBody {
            r#type: format!("/api/docs#problem-{}", self.code.as_str()),
            title: self.code.title(),
            status: status.as_u16(),
            detail: self.detail.into_owned(),
            code: self.code.as_str(),
            request_id: observe::current_request_id(),
            errors: self
                .errors
                .into_iter()
                .map(|e| FieldProblem { field: e.field.into_owned(), message: e.message.into_owned() })
                .collect(),
        };
        let mut response = (status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allowance) = self.allowance {
            allowance.write(headers);
        }
        let challenge = self.challenge.and_then(|text| HeaderValue::from_str(&text).ok());
        let challenge = challenge
            .or_else(|| (status == StatusCode::UNAUTHORIZED).then(|| HeaderValue::from_static("Bearer")));
        if let Some(challenge) = challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The whole chain of causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text.push_str(": ");
        text.push_str(&next.to_string());
        source = next.source();
    }
    text
}
