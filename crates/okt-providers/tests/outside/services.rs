//! Services that the operator named: anywhere, and nowhere else.

use std::net::IpAddr;

use http::HeaderName;
use okt_providers::{FetchError, GuardedClient, Request, Rule, Service, Wait};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use crate::server::{ALLOWED, QUICK, Server, any_port, client, get, moved, ok, refusal, text};

const HOME: [u8; 4] = [127, 0, 0, 1];

async fn answer(service: &Service, request: Request) -> Result<String, FetchError> {
    Ok(String::from_utf8(service.send(request).await?.bytes().await?).unwrap())
}

fn rule(error: &FetchError) -> Rule {
    match error {
        FetchError::Refused { rule, .. } => *rule,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_named_service_may_be_private_and_on_any_port() {
    let server = Server::start(any_port(HOME), |_| ok("at home")).await;
    let client = client(&[]);
    assert_eq!(refusal(&client, get(&server.url("/"))).await, Rule::Port);
    let service = client.service(&server.url("/v2").parse().unwrap());
    let url = service.url(["10.1000/a b?c#d", "..", "x"]);
    assert_eq!(url.as_str(), server.url("/v2/10.1000%2Fa%20b%3Fc%23d/x"));
    assert_eq!(answer(&service, get(url.as_str())).await.unwrap(), "at home");
    // What the service may, nobody else may: the client it was made of is what it was.
    assert_eq!(refusal(&client, get(&server.url("/"))).await, Rule::Port);
    assert_eq!(server.connections().await, 1);
}

#[tokio::test]
async fn a_service_asks_nobody_but_itself() {
    let other = Server::start(any_port(HOME), |_| ok("other")).await;
    let port = other.address.port();
    let server = Server::start(any_port(HOME), |_| ok("at home")).await;
    let service = client(&[]).service(&server.url("/").parse().unwrap());
    let own = server.address.port();
    for (url, expected) in [
        (other.url("/"), Rule::Elsewhere),
        (format!("http://127.0.0.2:{own}/"), Rule::Elsewhere),
        (format!("http://localhost:{own}/"), Rule::Elsewhere),
        (format!("https://127.0.0.1:{own}/"), Rule::Elsewhere),
        (format!("http://127.0.0.1:{own}@127.0.0.1:{port}/"), Rule::Elsewhere),
        (format!("http://user:pw@127.0.0.1:{own}/"), Rule::Credentials),
        ("file:///etc/passwd".into(), Rule::Scheme),
    ] {
        assert_eq!(rule(&service.send(get(&url)).await.err().unwrap()), expected, "{url}");
    }
    assert_eq!((server.connections().await, other.connections().await), (0, 0));
}

#[tokio::test]
async fn a_service_is_not_followed_anywhere() {
    let inside = Server::start(any_port(HOME), |_| ok("inside")).await;
    let to = inside.url("/");
    let server = Server::start(any_port(HOME), move |head| {
        if head.starts_with("GET /here ") { moved(302, "/again") } else { moved(302, &to) }
    })
    .await;
    let service = client(&[inside.address]).service(&server.url("/").parse().unwrap());
    for path in ["/here", "/away"] {
        let answer = service.send(get(&server.url(path)).follow_redirects()).await.unwrap();
        assert_eq!(answer.status, 302);
    }
    assert_eq!((server.connections().await, inside.connections().await), (2, 0));
}

#[tokio::test]
async fn a_service_is_looked_up_when_a_connection_is_made() {
    let server = Server::start(any_port(HOME), |_| ok("at home")).await;
    let base: Url = format!("http://solver.test:{}/", server.address.port()).parse().unwrap();
    let client = GuardedClient::with_look_up(&[], |host| async move {
        assert_eq!(host, "solver.test");
        Ok(vec![IpAddr::from(HOME)])
    })
    .unwrap();
    let service = client.service(&base);
    assert_eq!(answer(&service, get(base.as_str())).await.unwrap(), "at home");
    // The name is not in the least better known to everybody else.
    let public = format!("http://solver.test/?{}", server.address.port());
    assert_eq!(refusal(&client, get(&public)).await, Rule::Private);
}

#[tokio::test]
async fn a_service_without_an_address_is_told_apart_and_no_look_up_takes_for_ever() {
    let base: Url = "http://solver.test:8191/".parse().unwrap();
    let error = answer(&client(&[]).service(&base), get(base.as_str())).await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolvable { .. }), "{error:?}");
    let nowhere = GuardedClient::with_look_up(&[], |_| async { Ok(Vec::new()) }).unwrap();
    let error = answer(&nowhere.service(&base), get(base.as_str())).await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolvable { .. }), "{error:?}");
    let silent = GuardedClient::with_look_up(&[], |_| std::future::pending()).unwrap();
    let error = answer(&silent.service(&base), get(base.as_str())).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Connect, .. }), "{error:?}");
}

#[tokio::test]
async fn the_limits_hold_for_services_too() {
    let server = Server::start(any_port(HOME), |_| ok(&"x".repeat(2_000))).await;
    let service = client(&[]).service(&server.url("/").parse().unwrap());
    let error = answer(&service, get(&server.url("/")).max_bytes(1_000)).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { limit: 1_000 }), "{error:?}");
}

/// A server that reads a body of the announced length and sends it back.
async fn echo(at: [u8; 4]) -> Server {
    Server::serve(any_port(at), |head, mut socket| async move {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        socket.read_exact(&mut body).await.unwrap();
        let _ = socket.write_all(&ok(str::from_utf8(&body).unwrap())).await;
    })
    .await
}

#[tokio::test]
async fn json_is_posted() {
    let server = echo(HOME).await;
    let service = client(&[]).service(&server.url("/").parse().unwrap());
    let request = Request::post_json(server.url("/search"), &json!({ "q": "bees" }))
        .unwrap()
        .timeouts(QUICK)
        .header(HeaderName::from_static("x-api-key"), "key".parse().unwrap());
    assert_eq!(answer(&service, request).await.unwrap(), r#"{"q":"bees"}"#);
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /search http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n") && head.contains("x-api-key: key\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn what_was_posted_is_not_posted_elsewhere() {
    let other = echo(ALLOWED).await;
    let to = other.url("/");
    let server = Server::start(any_port(ALLOWED), move |_| moved(307, &to)).await;
    let client = client(&[server.address, other.address]);
    let request = Request::post_json(server.url("/"), &json!({ "secret": 1 })).unwrap().timeouts(QUICK);
    assert_eq!(client.send(request.follow_redirects()).await.unwrap().status, 307);
    assert_eq!(other.connections().await, 0);
    assert_eq!(text(&client, get(&server.url("/")).follow_redirects()).await.unwrap(), "");
}
