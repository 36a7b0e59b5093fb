//! Streams of server-sent events: who has one, for how long, and how it ends.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::request::Parts;
use http::{HeaderName, header};
use okt_app::{JobEvent, JobWatch};
use okt_auth::RepoScope;
use okt_config::Secret;
use okt_http::{Code, Principal, Problem};
use okt_model::{Error, Permission};
use tokio::time::Instant;

use crate::Api;
use crate::api::{bearer, principal};
use crate::jobs::JobView;
use crate::oauth::Issuer;

/// How streams behave.
#[derive(Clone, Copy, Debug)]
pub struct StreamRules {
    /// How often a silent one says that it is there.
    pub alive: Duration,
    /// How often its caller's rights are looked at.
    pub check: Duration,
    /// How long it may go on without knowing them.
    pub unchecked: Duration,
    /// After this it ends, and the client comes back.
    pub lifetime: Duration,
    /// How many one caller, and all of them, may have in this process.
    pub per_caller: usize,
    pub per_process: usize,
}

impl Default for StreamRules {
    fn default() -> Self {
        Self {
            alive: Duration::from_secs(15),
            check: Duration::from_secs(30),
            unchecked: Duration::from_mins(1),
            lifetime: Duration::from_mins(15),
            per_caller: 50,
            per_process: 10_000,
        }
    }
}

/// The streams of this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    total: usize,
    /// Never zero, so that the memory follows those who have one.
    by_caller: HashMap<Principal, usize>,
}

/// A place among the streams, until dropped.
pub(crate) struct Place {
    streams: Streams,
    caller: Principal,
}

impl Streams {
    fn take(&self, caller: Principal, rules: &StreamRules) -> Result<Place, Problem> {
        let mut counted = self.counted();
        if counted.total >= rules.per_process {
            return Err(Problem::new(Code::Overloaded, "the service is at its limit of streams"));
        }
        let theirs = counted.by_caller.get(&caller).copied().unwrap_or(0);
        if theirs >= rules.per_caller {
            let detail =
                format!("this caller has {theirs} streams open, which is the limit; close one first");
            return Err(Problem::new(Code::RateLimited, detail).retry_after(30));
        }
        counted.total += 1;
        counted.by_caller.insert(caller.clone(), theirs + 1);
        metrics::gauge!("okt_event_streams").increment(1);
        drop(counted);
        Ok(Place { streams: self.clone(), caller })
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counted = self.streams.counted();
        counted.total -= 1;
        if let Some(theirs) = counted.by_caller.get_mut(&self.caller) {
            *theirs -= 1;
            if *theirs == 0 {
                counted.by_caller.remove(&self.caller);
            }
        }
        metrics::gauge!("okt_event_streams").decrement(1);
    }
}

/// What a caller came with, to be looked at again while a stream goes on.
pub struct Watcher {
    scope: RepoScope,
    bearer: Secret,
    issuer: Option<Issuer>,
    pub(crate) last: Option<String>,
}

impl FromRequestParts<Api> for Watcher {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let scope = parts.extensions.get::<RepoScope>().cloned();
        let last = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        Ok(Self {
            scope: scope.ok_or_else(|| Error::internal("a stream belongs to a repository"))?,
            bearer: Secret::from(bearer(&parts.headers)?.unwrap_or_default().to_owned()),
            issuer: Issuer::of(api, parts),
            last: last.map(str::to_owned),
        })
    }
}

impl Watcher {
    pub(crate) const fn scope(&self) -> &RepoScope {
        &self.scope
    }

    /// Whether the same credential would still be let in.
    async fn is_valid(&self, api: &Api, permission: Permission) -> Result<bool, Error> {
        let caller = api.authenticate(self.bearer.expose(), || self.issuer.clone()).await?;
        let located = api.app.auth().locate(&self.scope.repository().to_string()).await?;
        let (Some(caller), Some(located)) = (caller, located) else { return Ok(false) };
        Ok(caller.let_in_repository(&located, permission).is_some())
    }

    pub(crate) fn take_place(&self, api: &Api) -> Result<Place, Problem> {
        api.streams.take(principal(self.scope.caller()), &api.stream_rules())
    }
}

/// One stream. It is driven by whoever reads it: no task of its own, and nothing is read ahead of a slow client.
struct Events {
    api: Api,
    watch: JobWatch,
    watcher: Watcher,
    permission: Permission,
    rules: StreamRules,
    alive_at: Instant,
    check_at: Instant,
    /// When the rights were known last.
    known_at: Instant,
    ends_at: Instant,
    _place: Place,
}

/// The answer that tells what `watch` sees, for as long as the caller holds the permission.
pub(crate) fn answer(
    api: &Api,
    watch: JobWatch,
    watcher: Watcher,
    permission: Permission,
    place: Place,
) -> Response {
    let (now, rules) = (Instant::now(), api.stream_rules());
    let events = Events {
        api: api.clone(),
        watch,
        watcher,
        permission,
        rules,
        alive_at: now + rules.alive,
        check_at: now + rules.check,
        known_at: now,
        ends_at: now + rules.lifetime,
        _place: place,
    };
    let told = stream::unfold(Box::new(events), |mut events| async move {
        let text = events.next().await?;
        Some((Ok::<_, std::convert::Infallible>(text), events))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Some proxies would wait for more before they send on what they have.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(told)).into_response()
}

/// What happened while a stream waited.
enum Woken {
    Changed,
    Alive,
    Check,
    End,
}

impl Events {
    /// The next text to send; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if self.watch.is_over() {
                return None;
            }
            // One timer for whatever is next: each takes room in every stream that waits.
            let due = self.ends_at.min(self.check_at).min(self.alive_at);
            let woken = tokio::select! {
                // What ends it comes first, however much there is to tell.
                biased;
                () = self.api.edge.closing() => Woken::End,
                () = tokio::time::sleep_until(due) => match due {
                    _ if due == self.ends_at => Woken::End,
                    _ if due == self.check_at => Woken::Check,
                    _ => Woken::Alive,
                },
                () = self.watch.changed() => Woken::Changed,
            };
            let text = match woken {
                // What asks the database is boxed: a stream that waits has no use for the room.
                Woken::Check if Box::pin(self.is_welcome()).await => continue,
                Woken::Check | Woken::End => return None,
                Woken::Alive => ": alive\n\n".to_owned(),
                Woken::Changed => text_of(Box::pin(self.watch.look()).await),
            };
            if !text.is_empty() {
                self.alive_at = Instant::now() + self.rules.alive;
                return Some(text);
            }
        }
    }

    /// While nobody can say, the last answer counts for a while.
    async fn is_welcome(&mut self) -> bool {
        let answer = self.watcher.is_valid(&self.api, self.permission).await;
        let now = Instant::now();
        match answer {
            Ok(true) => {
                self.known_at = now;
                self.check_at = now + self.rules.check;
                true
            }
            Ok(false) => false,
            Err(_) => {
                self.check_at = now + self.rules.check / 6;
                now < self.known_at + self.rules.unchecked
            }
        }
    }
}

fn text_of(events: Vec<JobEvent>) -> String {
    let mut text = String::new();
    for event in events {
        let _ = writeln!(text, "id: {}", event.id);
        let job = event.job.and_then(|job| serde_json::to_string(&JobView::from(job)).ok());
        if let Some(job) = job {
            let _ = writeln!(text, "event: job\ndata: {job}");
        }
        text.push('\n');
    }
    text
}
