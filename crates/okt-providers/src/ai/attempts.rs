//! One call: requests until one succeeds or no further one would.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use bytes::Bytes;
use okt_config::LlmRetry;
use tokio::time::{Instant, sleep};

use super::AiError;
use super::endpoint::Endpoint;
use super::remote::Remote;
use super::wire::Pieces;
use crate::guarded::{FetchError, Response, Rule, Timeouts};
use crate::retry_after::retry_after;

const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// What was read from an answer, and what it took.
pub(super) struct Answer<T> {
    pub value: T,
    pub latency: Duration,
    pub retries: u32,
}

/// A request that did not succeed.
struct Failure {
    error: AiError,
    /// Whether it is worth another request.
    passes: bool,
    retry_after: Option<Duration>,
}

/// Told what has come of an answer so far, each time that there is more, and an empty text when a request begins.
pub(super) type Heard<'h> = Option<&'h (dyn Fn(&str) + Send + Sync)>;

impl Remote {
    pub(super) async fn ask<V, T, F>(
        &self,
        path: &str,
        body: Bytes,
        heard: Heard<'_>,
        turn: T,
        read: impl Fn(&[u8]) -> Result<V, AiError>,
    ) -> Result<Answer<V>, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let retry = &self.retry;
        let mut retries = 0;
        loop {
            let failure = match self.ask_once(path, &body, heard, &turn, &read).await {
                Ok((value, latency)) => return Ok(Answer { value, latency, retries }),
                Err(failure) => failure,
            };
            retries += 1;
            let service = self.endpoint.name();
            let asked = failure.retry_after.unwrap_or_default();
            if asked > retry.max_delay.duration() {
                return Err(AiError::RateLimited { service, retry_after: Some(asked) });
            }
            if !failure.passes || retries >= retry.max_attempts {
                return Err(failure.error);
            }
            sleep(delay(retry, retries).max(asked)).await;
        }
    }

    /// One request and no other, whatever comes of it.
    pub(super) async fn ask_one<V, T, F>(
        &self,
        path: &str,
        body: Bytes,
        turn: T,
        read: impl Fn(&[u8]) -> Result<V, AiError>,
    ) -> Result<Answer<V>, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        match self.ask_once(path, &body, None, &turn, &read).await {
            Ok((value, latency)) => Ok(Answer { value, latency, retries: 0 }),
            Err(failure) => Err(failure.error),
        }
    }

    /// One request. Its place is held while it waits for its turn and while it is out, and not between two attempts.
    async fn ask_once<V, T, F>(
        &self,
        path: &str,
        body: &Bytes,
        heard: Heard<'_>,
        turn: &T,
        read: impl Fn(&[u8]) -> Result<V, AiError>,
    ) -> Result<(V, Duration), Failure>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let _place = match &self.places {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        turn().await.map_err(|error| Failure::lasting(AiError::Turn(error)))?;
        let begun = Instant::now();
        let limit = self.retry.per_call_timeout.duration();
        let answer = self.endpoint.post(path, body.clone(), heard, limit).await?;
        let value = read(&answer).map_err(|error| Failure {
            passes: error.is_retryable(),
            error,
            retry_after: None,
        })?;
        Ok((value, begun.elapsed()))
    }
}

impl Endpoint {
    async fn post(
        &self,
        path: &str,
        body: Bytes,
        heard: Heard<'_>,
        limit: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let (service, request) = self.request(path, body).map_err(Failure::lasting)?;
        let timeouts = Timeouts { idle: limit, total: limit, ..Timeouts::default() };
        let failed = |error| self.failure(error);
        let answer = service.send(request.max_bytes(MAX_BYTES).timeouts(timeouts)).await.map_err(failed)?;
        let status = answer.status.as_u16();
        let retry_after = retry_after(&answer.headers).filter(|_| matches!(status, 429 | 503));
        let body = match heard.filter(|_| status == 200) {
            Some(heard) => hear(answer, heard).await,
            None => answer.bytes().await,
        };
        match status {
            200 => body.map_err(failed),
            429 if body.as_ref().is_ok_and(|body| Self::is_out_of_money(body)) => {
                Err(Failure::lasting(self.refusal(status, &body.unwrap_or_default())))
            }
            429 => {
                let error = AiError::RateLimited { service: self.name(), retry_after };
                Err(Failure { error, passes: true, retry_after })
            }
            408 | 409 | 500..=599 => {
                let cause = format!("it answered {status}").into();
                let error = AiError::Unavailable { service: self.name(), cause };
                Err(Failure { error, passes: true, retry_after })
            }
            _ => Err(Failure::lasting(self.refusal(status, &body.unwrap_or_default()))),
        }
    }

    /// The ids of the models that it lists; `None` where it answers and has no list.
    pub(super) async fn list(&self, limit: Duration) -> Result<Option<Vec<String>>, AiError> {
        let (service, request) = self.listing()?;
        let timeouts = Timeouts { idle: limit, total: limit, ..Timeouts::default() };
        let failed = |error| self.failure(error).error;
        let answer = service.send(request.max_bytes(MAX_BYTES).timeouts(timeouts)).await.map_err(failed)?;
        let status = answer.status.as_u16();
        let body = answer.bytes().await.map_err(failed)?;
        match status {
            200 => Ok(Self::read_list(&body)),
            404 | 405 => Ok(None),
            500..=599 => {
                let cause = format!("it answered {status}").into();
                Err(AiError::Unavailable { service: self.name(), cause })
            }
            _ => Err(self.refusal(status, &body)),
        }
    }

    fn failure(&self, error: FetchError) -> Failure {
        let service = self.name();
        Failure::passing(match error {
            FetchError::Refused { rule: Rule::Offline, .. } => {
                return Failure::lasting(AiError::NotConfigured(
                    "this installation is offline (providers.offline), and the model is not on its machine",
                ));
            }
            // The base address is the only one that is asked, so that is what is wrong.
            FetchError::Refused { .. } => return Failure::lasting(self.wrong_address()),
            FetchError::TimedOut { limit, .. } => AiError::TimedOut { service, limit },
            FetchError::TooLarge { .. }
            | FetchError::Bomb { .. }
            | FetchError::Encoding { .. }
            | FetchError::Damaged => AiError::NotAModel { service, what: error.to_string() },
            error => AiError::Unavailable { service, cause: error.into() },
        })
    }
}

/// The whole body, of which somebody is told while it comes.
async fn hear(mut answer: Response, heard: &(dyn Fn(&str) + Send + Sync)) -> Result<Vec<u8>, FetchError> {
    let (mut whole, mut pieces) = (Vec::new(), Pieces::default());
    heard("");
    while let Some(piece) = answer.chunk().await? {
        whole.extend_from_slice(&piece);
        if pieces.read(&piece) {
            heard(pieces.text());
        }
    }
    Ok(whole)
}

impl Failure {
    const fn passing(error: AiError) -> Self {
        Self { error, passes: true, retry_after: None }
    }

    const fn lasting(error: AiError) -> Self {
        Self { error, passes: false, retry_after: None }
    }
}

/// Before the next request after so many failures: anything up to `base_delay` doubled each time. Anything, because who
/// failed together would otherwise come back together.
fn delay(retry: &LlmRetry, failures: u32) -> Duration {
    // A fresh one has keys of its own, which is all the chance that is needed here.
    let chance = RandomState::new().hash_one(0_u8) % 1_001;
    ceiling(retry, failures) * u32::try_from(chance).unwrap_or_default() / 1_000
}

fn ceiling(retry: &LlmRetry, failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    retry.base_delay.duration().saturating_mul(doubled).min(retry.max_delay.duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_doubled_up_to_the_longest_and_differ() {
        let retry = okt_config::Config::default().providers.llm_retry;
        for (failures, seconds) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (99, 30)] {
            let full = Duration::from_secs(seconds);
            assert_eq!(ceiling(&retry, failures), full);
            let waits: Vec<_> = (0..200).map(|_| delay(&retry, failures)).collect();
            assert!(waits.iter().all(|wait| *wait <= full), "{failures}: {waits:?}");
            assert!(
                waits.iter().any(|wait| *wait < full / 4) && waits.iter().any(|wait| *wait > full / 4 * 3)
            );
        }
    }
}
