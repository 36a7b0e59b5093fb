//! One resolution: who is asked, in which order, and what came of it.

use std::time::Duration;

use http::header::{ACCEPT, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use okt_config::ResolutionProvider as Provider;
use okt_model::{Locator, Result};
use tokio::time::{Instant, sleep};
use url::Url;

use super::attempt::{Attempt, Outcome, Trouble};
use super::hosts::Turn;
use super::page::{Page, PageQuality, Taker, Validators};
use super::retry::Tries;
use super::{End, Inner, Resolution, Wanted, challenge};
use crate::guarded::{FetchError, MAX_REDIRECTS, Profile, Request, Response, Timeouts};

const WANTS: HeaderValue = HeaderValue::from_static(
    "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,text/markdown;q=0.8,*/*;q=0.5",
);

pub(super) struct Run<'a, T> {
    pub resolver: &'a Inner,
    pub wanted: &'a Wanted,
    taker: &'a mut T,
    attempts: Vec<Attempt>,
    troubles: Vec<(Provider, Trouble)>,
}

/// What asking came to.
pub(super) enum Step {
    Done(End),
    Failed(Trouble),
}

/// How a page is asked for.
pub(super) struct Way {
    provider: Provider,
    timeout: Duration,
    profile: Option<Profile>,
}

impl Way {
    pub(super) const fn plain(provider: Provider, timeout: Duration) -> Self {
        Self { provider, timeout, profile: None }
    }
}

impl Step {
    pub(super) const fn outcome(&self) -> Outcome {
        match self {
            Self::Done(End::NotModified) => Outcome::NotModified,
            Self::Done(_) => Outcome::Taken,
            Self::Failed(trouble) => trouble.outcome,
        }
    }
}

impl<'a, T: Taker> Run<'a, T> {
    pub(super) const fn new(resolver: &'a Inner, wanted: &'a Wanted, taker: &'a mut T) -> Self {
        Self { resolver, wanted, taker, attempts: Vec::new(), troubles: Vec::new() }
    }

    pub(super) async fn go(mut self) -> Result<Resolution> {
        for provider in Provider::ALL {
            if !self.may_ask(provider) {
                continue;
            }
            // Boxed: the chain is as large as its largest link, and every job holds one.
            match Box::pin(self.ask(provider)).await? {
                None => {}
                Some(Step::Done(end)) => return Ok(Resolution { attempts: self.attempts, end }),
                Some(Step::Failed(trouble)) => self.troubles.push((provider, trouble)),
            }
        }
        let end = failed(self.troubles.into_iter().map(|(_, trouble)| trouble).collect());
        Ok(Resolution { attempts: self.attempts, end })
    }

    /// `None` when the provider is not set up, or has nothing to go by.
    async fn ask(&mut self, provider: Provider) -> Result<Option<Step>> {
        let resolver = self.resolver;
        let settings = &resolver.settings;
        match provider {
            Provider::Fetch if settings.fetch.enabled => {
                let way = Way::plain(provider, settings.fetch.timeout.duration());
                self.fetch(&way).await.map(Some)
            }
            Provider::OpenAccess => match (&resolver.open_access, self.doi()) {
                (Some(open_access), Some(doi)) => self.open_access(open_access, &doi).await.map(Some),
                _ => Ok(None),
            },
            Provider::ChallengeSolver => match &resolver.solver {
                Some(solver) => self.challenge_solver(solver).await.map(Some),
                None => Ok(None),
            },
            Provider::Tls if resolver.profile.is_some() => {
                let (timeout, profile) = (settings.tls.timeout.duration(), resolver.profile);
                let way = Way { provider, timeout, profile };
                // Once: what passes was waited for by `fetch`, and what does not is the same the next time.
                self.page(&way, &self.wanted.url, &self.wanted.validators).await.map(Some)
            }
            Provider::Fetch | Provider::Tls => Ok(None),
        }
    }

    fn may_ask(&self, provider: Provider) -> bool {
        let patience = self.resolver.settings.fetch.retry.max_delay.duration();
        self.wanted.providers.contains(&provider)
            && !self.wanted.skipped.contains(&provider)
            // What a copy elsewhere came to says nothing about the address itself.
            && self
                .troubles
                .iter()
                .filter(|(asked, _)| *asked != Provider::OpenAccess)
                .all(|(_, trouble)| trouble.lets(provider, patience))
    }

    fn doi(&self) -> Option<String> {
        self.wanted.doi.clone().or_else(|| Locator::parse(self.wanted.url.as_str()).ok()?.doi)
    }

    async fn fetch(&mut self, way: &Way) -> Result<Step> {
        let wanted = self.wanted;
        let mut tries = Tries::new(&self.resolver.settings.fetch.retry);
        loop {
            let step = self.page(way, &wanted.url, &wanted.validators).await?;
            let Step::Failed(trouble) = &step else { return Ok(step) };
            match tries.again(trouble) {
                Some(wait) => sleep(wait).await,
                None => return Ok(step),
            }
        }
    }

    /// Asks for a page once, and has it taken in.
    pub(super) async fn page(&mut self, way: &Way, url: &Url, validators: &Validators) -> Result<Step> {
        let began = Instant::now();
        let mut answered_by = None;
        let (step, status) = match self.resolver.open(way, url, validators).await {
            Ok((response, turn)) => {
                let status = response.status;
                answered_by = response.final_url.host_str().map(str::to_owned);
                (self.read(way.provider, response, turn, validators).await?, Some(status.as_u16()))
            }
            Err(trouble) => {
                let status = trouble.status;
                (Step::Failed(trouble), status)
            }
        };
        self.record(way.provider, url.to_string(), status, began, step.outcome());
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.answered_by = answered_by;
        }
        Ok(step)
    }

    async fn read(
        &mut self,
        provider: Provider,
        response: Response,
        turn: Turn,
        validators: &Validators,
    ) -> Result<Step> {
        let (status, headers) = (response.status, response.headers.clone());
        if status == StatusCode::NOT_MODIFIED && *validators != Validators::default() {
            return Ok(Step::Done(End::NotModified));
        }
        let place = response.final_url.origin().ascii_serialization();
        let mut page = Page::new(provider, response, turn);
        if challenge::may_be_html(&headers) {
            let (beginning, whole) = page.peek(challenge::LONGEST).await;
            if challenge::is_one(status, &headers, &beginning, whole) {
                let words = format!(
                    "{place} wants to see a browser or a person first; a challenge solver may get through, if an operator \
                     sets one up under providers.resolution.challenge_solver"
                );
                return Ok(Step::Failed(
                    Trouble::new(Outcome::Challenge, words).with_status(status.as_u16()),
                ));
            }
        }
        if !status.is_success() {
            return Ok(Step::Failed(Trouble::of_status(status, &headers, &place)));
        }
        self.take(&mut page).await
    }

    /// Hands a page to the taker. A body that broke off is no page, whatever was made of it.
    pub(super) async fn take(&mut self, page: &mut Page) -> Result<Step> {
        let quality = self.taker.take(page).await;
        if let Some(error) = page.failure() {
            return Ok(Step::Failed(Trouble::from(error)));
        }
        Ok(match quality? {
            PageQuality::Enough => Step::Done(End::Taken),
            PageQuality::TooLittle => Step::Failed(Trouble::new(
                Outcome::TooLittle,
                "the page has hardly any text; it may need a browser or a subscription",
            )),
            PageQuality::Unusable { code, message } => {
                Step::Failed(Trouble { code, ..Trouble::new(Outcome::Unusable, message) })
            }
        })
    }

    pub(super) fn record(
        &mut self,
        provider: Provider,
        url: String,
        status: Option<u16>,
        began: Instant,
        outcome: Outcome,
    ) {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.attempts.push(Attempt { provider, url, status, ms, outcome, answered_by: None });
    }

    pub(super) fn was_asked(&self, url: &Url) -> bool {
        self.attempts.iter().any(|attempt| attempt.url == url.as_str())
    }
}

impl Inner {
    /// Follows redirects to an answer. Every host on the way is asked in turn and as it wants to be asked.
    async fn open(&self, way: &Way, first: &Url, known: &Validators) -> Result<(Response, Turn), Trouble> {
        let mut url = first.clone();
        let mut left = way.timeout;
        for _ in 0..=MAX_REDIRECTS {
            let turn = self.enter(&url).await?;
            let began = Instant::now();
            let mut request = Request::get(url).timeouts(Timeouts { total: left, ..Timeouts::default() });
            request = match way.profile {
                Some(profile) => request.like(profile),
                None => request.header(ACCEPT, WANTS),
            };
            for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
                if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
                    request = request.header(name, value);
                }
            }
            let response = self.client.send(request).await?;
            let Some(next) = response.redirect()? else { return Ok((response, turn)) };
            left = left.saturating_sub(began.elapsed());
            url = next;
        }
        Err(FetchError::too_many_redirects(&url).into())
    }

    /// Waits for the turn of a page, if its site wants it to be fetched at all.
    pub(super) async fn enter(&self, url: &Url) -> Result<Turn, Trouble> {
        let gap = match &self.robots {
            Some(robots) => robots.check(&self.client, &self.hosts, url).await?,
            None => Duration::ZERO,
        };
        Ok(self.hosts.turn(url, gap).await)
    }
}

/// The one trouble that a source is shown to have: the first that may pass, since that is the one to wait for, or else the
/// first.
fn failed(mut troubles: Vec<Trouble>) -> End {
    let retry_after = troubles.iter().filter_map(|trouble| trouble.retry_after).max();
    if troubles.is_empty() {
        return End::Failed {
            code: "no_provider",
            message: "no provider can fetch it: each one is turned off in the repository or the configuration, needs an \
                      identifier that the source lacks, or is skipped because it kept failing for this host"
                .to_owned(),
            retryable: false,
            retry_after: None,
        };
    }
    let shown = troubles.iter().position(|trouble| trouble.retryable).unwrap_or(0);
    let Trouble { code, message, retryable, .. } = troubles.swap_remove(shown);
    End::Failed { code, message, retryable, retry_after: retry_after.filter(|_| retryable) }
}
