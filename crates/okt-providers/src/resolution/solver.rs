//! A browser that solves challenges, by the `FlareSolverr` protocol.
//!
//! It has a network of its own, which no check of ours reaches. So it is only told addresses that would be fetched here,
//! and what it brings from elsewhere is thrown away; what it can reach is for the operator to limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, StatusCode};
use okt_config::ChallengeSolver as Settings;
use okt_config::ResolutionProvider as Provider;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use url::Url;

use super::attempt::{Outcome, Trouble};
use super::hosts::Turn;
use super::page::{Page, Taker};
use super::retry::Tries;
use super::run::{Run, Step};
use super::{Inner, challenge};
use crate::guarded::{FetchError, GuardedClient, Request, Service, Timeouts};
use crate::text::one_line;

/// The only answer that is held whole.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// What the solver may take beyond the time it was given, to say so itself.
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) struct Solver {
    endpoints: Vec<Service>,
    next: AtomicUsize,
    /// `None`: no cap.
    free: Option<Semaphore>,
    settings: Settings,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
    solution: Option<Solution>,
}

#[derive(Deserialize)]
struct Solution {
    url: String,
    status: u16,
    response: String,
}

impl Solver {
    /// `None` when there is none.
    pub(super) fn new(settings: &Settings, client: &GuardedClient) -> Option<Self> {
        let endpoints: Vec<Service> =
            settings.url.iter().chain(&settings.endpoints).map(|url| client.service(url)).collect();
        let cap = usize::try_from(settings.max_concurrency).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        (!endpoints.is_empty()).then(|| Self {
            endpoints,
            next: AtomicUsize::new(0),
            free: (cap > 0).then(|| Semaphore::new(cap)),
            settings: settings.clone(),
        })
    }

    async fn solve(&self, url: &Url) -> Result<Solution, Trouble> {
        let _permit = match &self.free {
            Some(free) => free.acquire().await.ok(),
            None => None,
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.endpoints.len();
        let service = &self.endpoints[turn];
        let limit = self.settings.timeout.duration();
        let order = json!({ "cmd": "request.get", "url": url, "maxTimeout": limit.as_millis() });
        // Whether or not the operator wrote the path of the protocol.
        let base = service.url([]);
        let place = if base.path().ends_with("/v1") { base } else { service.url(["v1"]) };
        let request = Request::post_json(place, &order)
            .map_err(|_| silent())?
            .max_bytes(MAX_BYTES)
            .timeouts(Timeouts { total: limit + GRACE, ..Timeouts::default() });
        let body =
            async { service.send(request).await?.bytes().await }.await.map_err(|error| match error {
                FetchError::TooLarge { .. } | FetchError::Bomb { .. } => {
                    Trouble::new(Outcome::TooLarge, "the page is too large for the challenge solver")
                }
                _ => silent(),
            })?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| silent())?;
        match answer.solution {
            Some(solution) if answer.status == "ok" => Ok(solution),
            // It is a matter of luck at times.
            _ => Err(Trouble {
                again: true,
                ..Trouble::new(
                    Outcome::Challenge,
                    format!("the challenge solver did not get through: {}", one_line(&answer.message, 200)),
                )
            }),
        }
    }
}

fn silent() -> Trouble {
    Trouble::of_service("the challenge solver did not answer; try again later; an operator should check it")
}

impl Inner {
    /// A page by way of the solver.
    async fn solved(&self, solver: &Solver, url: &Url) -> Result<Page, Trouble> {
        self.client.may_fetch(url).await?;
        let turn: Turn = self.enter(url).await?;
        let solution = solver.solve(url).await?;
        // Where the browser ended up is not where it was sent, perhaps.
        let odd = || {
            Trouble::new(
                Outcome::AddressRefused,
                "the challenge solver was redirected to an address that may not be fetched",
            )
        };
        let final_url = Url::parse(&solution.url).map_err(|_| odd())?;
        self.client.may_fetch(&final_url).await?;
        let status = StatusCode::from_u16(solution.status).map_err(|_| silent())?;
        let html = solution.response;
        let whole = html.len() <= challenge::LONGEST;
        if whole && challenge::is_one(status, &HeaderMap::new(), html.as_bytes(), true) {
            let words = "the challenge solver returned a page that is itself a challenge";
            return Err(Trouble::new(Outcome::Challenge, words).with_status(solution.status));
        }
        if !status.is_success() {
            return Err(Trouble::of_status(
                status,
                &HeaderMap::new(),
                "the site, asked by the challenge solver,",
            ));
        }
        Ok(Page::whole(Provider::ChallengeSolver, final_url, status, html, turn))
    }
}

impl<T: Taker> Run<'_, T> {
    pub(super) async fn challenge_solver(&mut self, solver: &Solver) -> okt_model::Result<Step> {
        let url = &self.wanted.url;
        let mut tries = Tries::new(&solver.settings.retry);
        loop {
            let began = Instant::now();
            let (step, status) = match self.resolver.solved(solver, url).await {
                Ok(mut page) => {
                    let status = Some(page.status);
                    (self.take(&mut page).await?, status)
                }
                Err(trouble) => {
                    let status = trouble.status;
                    (Step::Failed(trouble), status)
                }
            };
            self.record(Provider::ChallengeSolver, url.to_string(), status, began, step.outcome());
            let Step::Failed(trouble) = step else { return Ok(step) };
            match tries.again(&trouble) {
                Some(wait) => sleep(wait).await,
                None => return Ok(Step::Failed(trouble)),
            }
        }
    }
}
