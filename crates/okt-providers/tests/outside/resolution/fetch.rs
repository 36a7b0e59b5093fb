//! Plain HTTP, and whom a failure is passed on to.

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use okt_model::Result;
use okt_providers::resolution::{End, Page, PageQuality, Provider, Resolution, Taker, Validators, Wanted};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;

use super::*;
use crate::server::{moved, packed};

/// What becomes of a page at a site with these answers, with a solver and an open access service at hand.
struct Fetched {
    story: Vec<String>,
    resolution: Resolution,
    site: Server,
    solver: Server,
    service: Server,
    reader: Reader,
}

async fn fetched(answers: Vec<Vec<u8>>, change: impl FnOnce(&mut Config, &mut Wanted)) -> Fetched {
    let site = site(answers).await;
    let copy = site.url("/copy");
    let (solver, service) = (willing_solver().await, open_access_of(&[copy]).await);
    let mut config = with_open_access(with_solver(&solver), &service);
    let mut wanted = wanted(&site.url("/a"));
    change(&mut config, &mut wanted);
    let mut reader = Reader::default();
    let resolution = resolver(&config, &[site.address]).resolve(&wanted, &mut reader).await.unwrap();
    Fetched { story: story(&resolution), resolution, site, solver, service, reader }
}

const DOI: &str = "10.1000/bees";

#[tokio::test]
async fn a_page_is_fetched_and_nobody_else_is_asked() {
    let lines = "content-type: text/html\r\netag: \"1\"\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let fetched = fetched(vec![page(200, lines, ARTICLE)], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 200 taken"]);
    assert_eq!(fetched.resolution.end, End::Taken);
    assert_eq!(fetched.reader.pages, [ARTICLE]);
    let validators = Validators {
        etag: Some("\"1\"".into()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()),
    };
    let told = (Provider::Fetch, fetched.site.url("/a"), Some("text/html".into()), validators);
    assert_eq!(fetched.reader.last, Some(told));
    assert_eq!((fetched.solver.connections().await, fetched.service.connections().await), (0, 0));
    assert_eq!(fetched.resolution.attempts[0].failed(), Some(false));
    assert_eq!(fetched.resolution.attempts[0].host().unwrap(), "127.77.0.1");
}

#[tokio::test]
async fn a_403_is_tried_again_and_then_somebody_else_is_asked() {
    let fetched = fetched(vec![status(403, "")], |_, _| {}).await;
    assert_eq!(
        fetched.story,
        [
            "fetch /a 403 forbidden",
            "fetch /a 403 forbidden",
            "fetch /a 403 forbidden",
            "challenge_solver /a 200 taken"
        ]
    );
}

#[tokio::test]
async fn a_403_is_final_when_the_settings_say_so() {
    let fetched = fetched(vec![status(403, "")], |config, wanted| {
        config.providers.resolution.fetch.retry.retry_403_max_attempts = 0;
        wanted.providers = [Provider::Fetch].into();
    })
    .await;
    assert_eq!(fetched.story, ["fetch /a 403 forbidden"]);
    assert_eq!(code(&fetched.resolution), "forbidden");
    assert!(matches!(fetched.resolution.end, End::Failed { retryable: false, .. }));
}

#[tokio::test]
async fn payment_walls_are_not_tried_twice() {
    for wall in [401, 402, 451] {
        let fetched = fetched(vec![status(wall, "")], |_, _| {}).await;
        assert_eq!(
            fetched.story,
            [format!("fetch /a {wall} forbidden"), "challenge_solver /a 200 taken".into()]
        );
    }
}

#[tokio::test]
async fn a_server_error_passes() {
    let fetched = fetched(vec![status(500, ""), status(502, ""), page(200, "", ARTICLE)], |_, _| {}).await;
    assert_eq!(
        fetched.story,
        ["fetch /a 500 server_error", "fetch /a 502 server_error", "fetch /a 200 taken"]
    );
}

#[tokio::test]
async fn a_host_that_names_a_time_is_not_asked_before_it() {
    let began = Instant::now();
    let later = status(429, "retry-after: 1\r\n");
    let fetched = fetched(vec![later, page(200, "", ARTICLE)], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 429 rate_limited", "fetch /a 200 taken"]);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_host_that_wants_to_be_left_alone_for_long_is() {
    let dated = "date: Sun, 06 Nov 1994 08:00:00 GMT\r\nretry-after: Sun, 06 Nov 1994 09:00:00 GMT\r\n";
    for (code, lines) in [(429, "retry-after: 3600\r\n"), (503, dated)] {
        let fetched = fetched(vec![status(code, lines)], |_, _| {}).await;
        let outcome = if code == 429 { "rate_limited" } else { "server_error" };
        assert_eq!(fetched.story, [format!("fetch /a {code} {outcome}")]);
        let End::Failed { code, retryable, retry_after, .. } = fetched.resolution.end else { panic!() };
        assert_eq!((code, retryable, retry_after), (outcome, true, Some(Duration::from_hours(1))));
        assert_eq!(fetched.solver.connections().await, 0, "that would be another way to ask the same host");
    }
}

#[tokio::test]
async fn a_copy_elsewhere_is_asked_for_even_so() {
    let elsewhere = site(vec![page(200, "", ARTICLE)]).await;
    let service = open_access_of(&[elsewhere.url("/copy")]).await;
    let site = site(vec![status(429, "retry-after: 3600\r\n")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[site.address, elsewhere.address]);
    let resolution = resolver.resolve(&with_doi(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 429 rate_limited", "open_access /copy 200 taken"]);
}

#[tokio::test]
async fn what_is_not_there_is_not_looked_for_with_a_browser() {
    for gone in [404, 410] {
        let fetched = fetched(vec![status(gone, ""), page(200, "", ARTICLE)], |_, _| {}).await;
        assert_eq!(fetched.story, [format!("fetch /a {gone} not_found")]);
        assert_eq!(code(&fetched.resolution), "not_found");
        assert_eq!(fetched.resolution.attempts[0].failed(), None);
        assert_eq!((fetched.solver.connections().await, fetched.service.connections().await), (0, 0));
    }
    let answers = vec![status(404, ""), page(200, "", ARTICLE)];
    let fetched = fetched(answers, |_, wanted| wanted.doi = Some(DOI.into())).await;
    assert_eq!(fetched.story, ["fetch /a 404 not_found", "open_access /copy 200 taken"]);
}

#[tokio::test]
async fn other_refusals_go_to_the_next() {
    let fetched = fetched(vec![status(406, "")], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 406 rejected", "challenge_solver /a 200 taken"]);
}

#[tokio::test]
async fn a_body_that_is_shorter_than_it_said_is_fetched_again() {
    let cut =
        b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n<p>Bees dance to tell each other where</p>".to_vec();
    let fetched = fetched(vec![cut, page(200, "", ARTICLE)], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 200 interrupted", "fetch /a 200 taken"]);
}

#[tokio::test]
async fn a_body_that_is_longer_than_it_said_has_too_little_in_it() {
    let lie = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{ARTICLE}").into_bytes();
    let fetched = fetched(vec![lie], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 200 too_little", "challenge_solver /a 200 taken"]);
    assert_eq!(fetched.reader.pages, ["<titl", ARTICLE]);
}

#[tokio::test]
async fn a_bomb_is_not_fetched_again_by_anybody() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![0; 16 * 1024 * 1024]).unwrap();
    let bomb = packed("gzip", &bomb.finish().unwrap());
    let fetched = fetched(vec![bomb], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a 200 too_large"]);
    assert_eq!(code(&fetched.resolution), "too_large");
    assert_eq!(fetched.solver.connections().await, 0);
}

#[tokio::test]
async fn a_dropped_connection_passes() {
    let fetched = fetched(vec![Vec::new(), page(200, "", ARTICLE)], |_, _| {}).await;
    assert_eq!(fetched.story, ["fetch /a - interrupted", "fetch /a 200 taken"]);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_and_the_next_is_asked() {
    let site = Server::serve(any_port(ALLOWED), |head, mut socket| async move {
        if head.starts_with("GET /robots.txt ") {
            let _ = socket.write_all(&status(404, "")).await;
        } else {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let solver = willing_solver().await;
    let mut config = with_solver(&solver);
    config.providers.resolution.fetch.timeout = Duration::from_millis(200).into();
    config.providers.resolution.fetch.retry.max_attempts = 2;
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(
        story(&resolution),
        ["fetch /a - timed_out", "fetch /a - timed_out", "challenge_solver /a 200 taken"]
    );
    assert!(resolution.attempts[0].ms >= 200);
}

#[tokio::test]
async fn nothing_private_is_touched_and_nobody_else_is_asked() {
    let inside = Server::start(any_port([127, 0, 0, 1]), |_| ok(ARTICLE)).await;
    let port = inside.address.port();
    for to in
        [inside.url("/"), format!("http://inside.test:{port}/"), format!("http://[::ffff:127.0.0.1]:{port}/")]
    {
        let fetched = fetched(vec![moved(302, &to)], |_, wanted| wanted.doi = Some(DOI.into())).await;
        assert_eq!(fetched.story, ["fetch /a - address_refused"]);
        assert_eq!(code(&fetched.resolution), "address_refused");
        assert_eq!(fetched.resolution.attempts[0].failed(), None);
        assert_eq!((fetched.solver.connections().await, fetched.service.connections().await), (0, 0));
    }
    for url in [inside.url("/"), "http://inside.test/".into(), "http://169.254.169.254/".into()] {
        let solver = willing_solver().await;
        let resolver = resolver(&with_solver(&solver), &[]);
        let resolution = resolver.resolve(&wanted(&url), &mut Reader::default()).await.unwrap();
        assert_eq!(code(&resolution), "address_refused");
        assert_eq!(resolution.attempts.len(), 1);
        assert_eq!(solver.connections().await, 0);
    }
    assert_eq!(inside.connections().await, 0);
}

#[tokio::test]
async fn a_name_without_an_address_is_told_apart() {
    let resolver = resolver(&config(), &[]);
    let resolution =
        resolver.resolve(&wanted("http://nowhere.test/a"), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a - unresolvable"]);
    assert!(matches!(resolution.end, End::Failed { code: "unresolvable", retryable: true, .. }));
}

#[tokio::test]
async fn redirects_are_followed_and_counted() {
    let site = Server::start(any_port(ALLOWED), |head| {
        if head.starts_with("GET /robots.txt ") {
            return status(404, "");
        }
        let left: usize = head.split([' ', '/']).nth(2).unwrap().parse().unwrap();
        if left == 0 { ok(ARTICLE) } else { moved(302, &format!("/{}", left - 1)) }
    })
    .await;
    let resolver = resolver(&config(), &[site.address]);
    let mut reader = Reader::default();
    let resolution = resolver.resolve(&wanted(&site.url("/5")), &mut reader).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /5 200 taken"]);
    assert_eq!(reader.last.unwrap().1, site.url("/0"));
    let resolution = resolver.resolve(&wanted(&site.url("/6")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /6 - unusable"]);
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let site = Server::start(any_port(ALLOWED), |head| {
        let head = head.to_ascii_lowercase();
        if head.starts_with("get /robots.txt ") {
            return status(404, "");
        }
        let known =
            head.contains("if-none-match: \"1\"\r\n") && head.contains("if-modified-since: sun, 06 nov");
        if known { b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec() } else { ok(ARTICLE) }
    })
    .await;
    let resolver = resolver(&config(), &[site.address]);
    let validators = Validators {
        etag: Some("\"1\"".into()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()),
    };
    let again = Wanted { validators, ..wanted(&site.url("/a")) };
    let resolution = resolver.resolve(&again, &mut Reader::default()).await.unwrap();
    assert_eq!(
        (story(&resolution).join(""), resolution.end),
        ("fetch /a 304 not_modified".into(), End::NotModified)
    );
    assert_eq!(resolution.attempts[0].failed(), Some(false));
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(resolution.end, End::Taken);
}

#[tokio::test]
async fn too_little_from_everybody_is_too_little() {
    let fetched = fetched(vec![page(200, "", "<p>Bees.</p>")], |config, wanted| {
        config.providers.resolution.challenge_solver.url = None;
        wanted.doi = Some(DOI.into());
    })
    .await;
    assert_eq!(fetched.story, ["fetch /a 200 too_little", "open_access /copy 200 too_little"]);
    assert_eq!(code(&fetched.resolution), "too_little_content");
    assert_eq!(fetched.reader.pages.len(), 2);
}

#[tokio::test]
async fn who_is_off_or_left_out_is_not_asked() {
    let fetched = fetched(vec![page(200, "", ARTICLE)], |_, wanted| {
        wanted.providers = [Provider::Fetch, Provider::OpenAccess].into();
        wanted.skipped = [Provider::Fetch].into();
    })
    .await;
    assert_eq!(fetched.story, Vec::<String>::new());
    assert_eq!(code(&fetched.resolution), "no_provider");
    assert_eq!(fetched.site.connections().await, 0);
    let fetched = super::fetch::fetched(vec![page(200, "", ARTICLE)], |config, _| {
        config.providers.resolution.fetch.enabled = false;
    })
    .await;
    assert_eq!(fetched.story, ["challenge_solver /a 200 taken"]);
    assert_eq!(pages(&fetched.site), 0);
}

#[tokio::test]
async fn a_fault_of_the_taker_ends_everything() {
    let site = site(vec![page(200, "", ARTICLE)]).await;
    let solver = willing_solver().await;
    let resolver = resolver(&with_solver(&solver), &[site.address]);
    let error = resolver.resolve(&wanted(&site.url("/a")), &mut Broken).await.unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(solver.connections().await, 0);
}

/// The second half is only sent when the first has been handed out.
struct Halves(Option<oneshot::Sender<()>>, usize);

impl Taker for Halves {
    async fn take(&mut self, page: &mut Page) -> Result<PageQuality> {
        while let Some(piece) = page.chunk().await? {
            self.1 += piece.len();
            if self.1 >= 100_000
                && let Some(go_on) = self.0.take()
            {
                go_on.send(()).unwrap();
            }
        }
        Ok(PageQuality::Enough)
    }
}

#[tokio::test]
async fn a_body_is_handed_on_while_it_arrives() {
    let (go_on, gone_on) = oneshot::channel();
    let gone_on = tokio::sync::Mutex::new(Some(gone_on));
    let gone_on = std::sync::Arc::new(gone_on);
    let site = Server::serve(any_port(ALLOWED), move |head, mut socket| {
        let gone_on = std::sync::Arc::clone(&gone_on);
        async move {
            if head.starts_with("GET /robots.txt ") {
                let _ = socket.write_all(&status(404, "")).await;
                return;
            }
            let half = vec![b'x'; 100_000];
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n").await;
            let _ = socket.write_all(&half).await;
            gone_on.lock().await.take().unwrap().await.unwrap();
            let _ = socket.write_all(&half).await;
        }
    })
    .await;
    let resolver = resolver(&config(), &[site.address]);
    let mut halves = Halves(Some(go_on), 0);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut halves).await.unwrap();
    assert_eq!((story(&resolution).join(""), halves.1), ("fetch /a 200 taken".into(), 200_000));
}
