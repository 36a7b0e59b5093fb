//! Free copies of scholarly works, by the Unpaywall protocol.

use okt_config::OpenAccess as Settings;
use okt_config::ResolutionProvider as Provider;
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use url::Url;

use super::attempt::{Outcome, Trouble};
use super::page::{Taker, Validators};
use super::retry::delay;
use super::run::{Run, Step, Way};
use crate::guarded::{FetchError, GuardedClient, Request, Service, Timeouts};

/// What a record of a work may have at most; they have some kilobytes.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// Works have copies in dozens of archives at times.
const MAX_COPIES: usize = 8;

pub(super) struct OpenAccess {
    service: Service,
    email: String,
}

#[derive(Deserialize)]
struct Record {
    best_oa_location: Option<Location>,
    oa_locations: Option<Vec<Location>>,
}

#[derive(Deserialize)]
struct Location {
    url_for_pdf: Option<String>,
    url_for_landing_page: Option<String>,
}

impl OpenAccess {
    /// `None` when nobody said who we are.
    pub(super) fn new(settings: &Settings, client: &GuardedClient) -> Option<Self> {
        (!settings.email.is_empty())
            .then(|| Self { service: client.service(&settings.base_url), email: settings.email.clone() })
    }

    /// Where copies are, the best first.
    async fn copies(&self, doi: &str) -> Result<Vec<Url>, Trouble> {
        let mut url = self.service.url(doi.split('/'));
        url.query_pairs_mut().append_pair("email", &self.email);
        let request = Request::get(url).max_bytes(MAX_BYTES).timeouts(Timeouts::default());
        let answer = self.service.send(request).await.map_err(silent)?;
        let status = answer.status;
        let trouble = match status.as_u16() {
            200 => {
                let body = answer.bytes().await.map_err(silent)?;
                let record: Record = serde_json::from_slice(&body).map_err(|_| {
                    Trouble::of_service("the open access service did not answer in its protocol")
                })?;
                return Some(record.copies())
                    .filter(|copies| !copies.is_empty())
                    .ok_or_else(|| no_copy().with_status(200));
            }
            404 => no_copy(),
            429 | 500..=599 => {
                let trouble = Trouble::of_status(status, &answer.headers, "the open access service");
                Trouble { retry_after: trouble.retry_after, ..Trouble::of_service(trouble.message) }
            }
            _ => Trouble::new(
                Outcome::ProviderFailed,
                format!(
                    "the open access service answered {}: an operator should check \
                     providers.resolution.open_access.email and base_url",
                    status.as_u16()
                ),
            ),
        };
        Err(trouble.with_status(status.as_u16()))
    }
}

impl Record {
    fn copies(self) -> Vec<Url> {
        let mut copies: Vec<Url> = Vec::new();
        let locations = self.best_oa_location.into_iter().chain(self.oa_locations.unwrap_or_default());
        for text in locations.flat_map(|place| [place.url_for_pdf, place.url_for_landing_page]).flatten() {
            if let Ok(url) = Url::parse(&text)
                && matches!(url.scheme(), "http" | "https")
                && !copies.contains(&url)
            {
                copies.push(url);
            }
        }
        copies.truncate(MAX_COPIES);
        copies
    }
}

fn silent(_: FetchError) -> Trouble {
    Trouble::of_service("the open access service did not answer; try again later")
}

fn no_copy() -> Trouble {
    Trouble::new(Outcome::NoCopy, "no free copy of the work is known")
}

impl<T: Taker> Run<'_, T> {
    /// Looks the work up and tries its copies, each once. Those with trouble that passes get a second chance, all of them
    /// after one wait.
    pub(super) async fn open_access(&mut self, provider: &OpenAccess, doi: &str) -> okt_model::Result<Step> {
        let retry = &self.resolver.settings.fetch.retry;
        let began = Instant::now();
        let mut found = provider.copies(doi).await;
        if found.as_ref().is_err_and(|trouble| trouble.retryable) {
            sleep(delay(retry, 1)).await;
            found = provider.copies(doi).await;
        }
        let copies = match found {
            Ok(copies) => copies,
            Err(trouble) => {
                let url = format!("https://doi.org/{doi}");
                self.record(Provider::OpenAccess, url, trouble.status, began, trouble.outcome);
                return Ok(Step::Failed(trouble));
            }
        };
        let mut left: Vec<Url> = copies.into_iter().filter(|url| !self.was_asked(url)).collect();
        let mut first = None;
        for pass in 0..2 {
            if pass == 1 && !left.is_empty() {
                sleep(delay(retry, 1)).await;
            }
            let mut again = Vec::new();
            for url in left {
                let way = Way::plain(Provider::OpenAccess, self.resolver.settings.fetch.timeout.duration());
                match self.page(&way, &url, &Validators::default()).await? {
                    Step::Done(end) => return Ok(Step::Done(end)),
                    Step::Failed(trouble) => {
                        if trouble.again {
                            again.push(url);
                        }
                        first.get_or_insert(trouble);
                    }
                }
            }
            left = again;
        }
        Ok(Step::Failed(first.unwrap_or_else(no_copy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_best_first_once_each_and_only_from_the_web() {
        let record: Record = serde_json::from_str(
            r#"{"best_oa_location": {"url_for_pdf": "https://a.test/1.pdf", "url_for_landing_page": "https://a.test/1"},
                "oa_locations": [
                    {"url_for_pdf": "https://a.test/1.pdf", "url_for_landing_page": null},
                    {"url_for_pdf": null, "url_for_landing_page": "ftp://b.test/"},
                    {"url_for_landing_page": "http://b.test/x", "license": "cc-by"}
                ]}"#,
        )
        .unwrap();
        let copies: Vec<String> = record.copies().into_iter().map(String::from).collect();
        assert_eq!(copies, ["https://a.test/1.pdf", "https://a.test/1", "http://b.test/x"]);
        let none: Record = serde_json::from_str(r#"{"best_oa_location": null, "oa_locations": []}"#).unwrap();
        assert!(none.copies().is_empty());
    }
}
