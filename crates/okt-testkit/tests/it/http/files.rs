//! Static files, and the page that is answered where there is none.

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::notes::{self, SCRIPT};
use okt_testkit::served::TestService;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// As a browser does where somebody follows a link.
async fn visit(service: &TestService, path: &str) -> Answer {
    Answer::of(service.request(Method::GET, path).header("accept", BROWSER)).await
}

/// The nonce that the policy of a page names.
fn nonce(page: &Answer) -> String {
    let policy = page.header("content-security-policy");
    policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned()
}

#[tokio::test]
async fn a_hashed_file_is_kept_for_ever_and_the_page_is_asked_for_again() {
    let service = TestService::notes(&[]).await;
    let script = service.get(SCRIPT).await;
    assert_eq!((script.status.as_u16(), script.text.len()), (200, 90_000));
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(script.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(script.header("x-content-type-options"), "nosniff");
    assert!(!script.header("x-request-id").is_empty());

    let page = service.get("/").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(
        (page.header("cache-control"), page.header("x-content-type-options")),
        ("no-store", "nosniff")
    );
    // A nonce of its own for each answer, the same in the policy and in the page.
    let again = service.get("/").await;
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; script-src 'self';"));
    assert_ne!(nonce(&page), nonce(&again));
    for page in [&page, &again] {
        assert!(page.text.contains(&format!("nonce=\"{}\"", nonce(page))), "{page:?}");
    }

    let icon = service.get("/icon.svg").await;
    assert_eq!((icon.header("content-type"), icon.header("cache-control")), ("image/svg+xml", "no-cache"));
    let etag = icon.header("etag").to_owned();
    assert!(etag.len() > 20 && etag.starts_with('"'), "{etag}");
    for (known, status) in [(etag.as_str(), 304), (&format!("W/{etag}, \"x\""), 304), ("\"x\"", 200)] {
        let again =
            Answer::of(service.request(Method::GET, "/icon.svg").header("if-none-match", known)).await;
        assert_eq!((again.status.as_u16(), again.header("etag")), (status, etag.as_str()), "{known}");
        assert_eq!((again.header("cache-control"), again.text.is_empty()), ("no-cache", status == 304));
    }
    let head = Answer::of(service.request(Method::HEAD, SCRIPT)).await;
    assert_eq!((head.status.as_u16(), head.header("content-length"), &*head.text), (200, "90000", ""));
    let written = Answer::of(service.request(Method::DELETE, SCRIPT)).await;
    assert_eq!((written.status.as_u16(), &*written.problem()), (405, "method_not_allowed"));
    assert_eq!(written.header("allow"), "GET, HEAD");
}

#[tokio::test]
async fn a_file_is_sent_compressed_to_those_who_take_it() {
    let service = TestService::notes(&[]).await;
    for (accepted, encoding, length) in [
        ("gzip, deflate, br", "br", 9),
        ("gzip", "gzip", 7),
        ("br;q=0, GZIP;q=0.5", "gzip", 7),
        ("identity", "", 90_000),
    ] {
        let script =
            Answer::of(service.request(Method::GET, SCRIPT).header("accept-encoding", accepted)).await;
        assert_eq!((script.header("content-encoding"), script.text.len()), (encoding, length), "{accepted}");
        assert_eq!(script.header("vary"), "accept-encoding");
        assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    }
    let icon = Answer::of(service.request(Method::GET, "/icon.svg").header("accept-encoding", "br")).await;
    assert_eq!((icon.header("content-encoding"), icon.header("vary")), ("", ""));
}

#[tokio::test]
async fn browsers_get_the_page_for_its_own_paths_and_programs_are_told_that_there_is_nothing() {
    let service = TestService::notes(&[]).await;
    for path in ["/repositories/bees", "/repositories/bees/sources/10.1000/182", "/apiary", "/a/"] {
        let found = visit(&service, path).await;
        assert_eq!((found.status.as_u16(), found.header("cache-control")), (200, "no-store"), "{path}");
        assert!(found.text.contains("<title>Notes</title>"), "{path}");
        let told = service.get(path).await;
        assert_eq!((told.status.as_u16(), &*told.problem()), (404, "not_found"), "{path}");
    }
    for path in
        ["/api", "/api/v1/nothing", "/api/v2", "/.well-known/openid-configuration", "/mcp", "/assets/x"]
    {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let told = Answer::of(service.request(method, path).header("accept", BROWSER)).await;
            assert_eq!((told.status.as_u16(), &*told.problem()), (404, "not_found"), "{path}");
        }
    }
    // What is missing of a page is missing, and what another line answers is its own.
    let script = Answer::of(service.request(Method::GET, "/assets/app-0.js").header("accept", "*/*")).await;
    assert_eq!(script.problem(), "not_found");
    assert_eq!(visit(&service, "/notes/1").await.problem(), "not_found");
    assert_eq!(visit(&service, "/notes").await.problem(), "unauthenticated");
    let posted = Answer::of(service.request(Method::POST, "/repositories/bees").json(&1)).await;
    assert_eq!(posted.problem(), "not_found");
    let lines: Vec<_> = notes::routes(&service.api).lines().iter().map(ToString::to_string).collect();
    assert!(lines.contains(&"GET / — public, files".to_owned()), "{lines:#?}");
}

#[tokio::test]
async fn files_have_a_limit_of_their_own() {
    let settings =
        [("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "2"), ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")];
    let service = TestService::notes(&settings).await;
    let ask = async |address: &str, path: &str| {
        let request = service.request(Method::GET, path).header("x-forwarded-for", address);
        Answer::of(request).await.status.as_u16()
    };
    for n in 0..50 {
        assert_eq!(ask("192.0.2.1", SCRIPT).await, 200, "{n}");
    }
    assert_eq!(ask("192.0.2.1", SCRIPT).await, 429, "there is an end to it");
    assert_eq!(ask("192.0.2.2", SCRIPT).await, 200, "for this address alone");
    assert_eq!(ask("192.0.2.1", "/notes/1").await, 404, "and requests are counted apart");
    assert_eq!(ask("192.0.2.1", "/notes/1").await, 404);
    assert_eq!(ask("192.0.2.1", "/notes/1").await, 429);
}
