//! Redirects: how many, where to, and what goes along.

use std::net::IpAddr;

use http::HeaderValue;
use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use okt_providers::{FetchError, GuardedClient, Rule};

use crate::server::{ALLOWED, ALSO_ALLOWED, Server, any_port, client, get, moved, ok, refusal, text};

/// `/3` leads to `/2`, and so on to `/0`, with the five ways to say so.
fn countdown(head: &str) -> Vec<u8> {
    let left: usize = head.split([' ', '/']).nth(2).unwrap().parse().unwrap();
    if left == 0 {
        ok("arrived")
    } else {
        moved([301, 302, 303, 307, 308][left % 5], &format!("/{}", left - 1))
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_not() {
    for hops in 0..=7 {
        let server = Server::start(any_port(ALLOWED), countdown).await;
        let client = client(&[server.address]);
        let answer = text(&client, get(&server.url(&format!("/{hops}"))).follow_redirects()).await;
        if hops <= 5 {
            assert_eq!(answer.unwrap(), "arrived");
            assert_eq!(server.connections().await, hops + 1);
        } else {
            let error = answer.unwrap_err();
            assert!(matches!(error, FetchError::TooManyRedirects { limit: 5, .. }), "{error:?}");
            assert_eq!(server.connections().await, 6);
        }
    }
}

#[tokio::test]
async fn the_answer_tells_where_it_came_from() {
    let server = Server::start(any_port(ALLOWED), countdown).await;
    let response = client(&[server.address]).send(get(&server.url("/2")).follow_redirects()).await.unwrap();
    assert_eq!(response.final_url.as_str(), server.url("/0"));
}

#[tokio::test]
async fn unasked_a_redirect_is_only_an_answer() {
    let server = Server::start(any_port(ALLOWED), countdown).await;
    let response = client(&[server.address]).send(get(&server.url("/2"))).await.unwrap();
    assert_eq!(response.status, 303);
    assert_eq!(response.headers["location"], "/1");
    assert_eq!(response.final_url.as_str(), server.url("/2"));
    assert_eq!(server.connections().await, 1);
}

#[tokio::test]
async fn every_hop_is_checked_like_the_first() {
    let forbidden = Server::start(any_port([127, 0, 0, 1]), |_| ok("inside")).await;
    let port = forbidden.address.port();
    for (location, rule) in [
        (format!("http://127.0.0.1:{port}/"), Rule::Private),
        (format!("//127.0.0.1:{port}/"), Rule::Private),
        (format!("http://2130706433:{port}/"), Rule::Private),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), Rule::Private),
        (format!("http://inside.test:{port}/"), Rule::Private),
        (format!("http:\\\\127.0.0.1:{port}"), Rule::Private),
        ("http://169.254.169.254/latest/meta-data/".into(), Rule::Private),
        (format!("http://user:pw@127.0.0.1:{port}/"), Rule::Credentials),
        ("http://user@public.test/".into(), Rule::Credentials),
        ("http://public.test:22/".into(), Rule::Port),
        ("file:///etc/passwd".into(), Rule::Scheme),
        ("ftp://public.test/".into(), Rule::Scheme),
        ("data:text/plain,x".into(), Rule::Scheme),
        (format!("http://[fe80::1%25lo]:{port}/"), Rule::Malformed),
        ("http://\u{fffd}".into(), Rule::Malformed),
    ] {
        // The third hop, after two that are fine.
        let to = location.clone();
        let server = Server::start(any_port(ALLOWED), move |head| {
            if head.starts_with("GET /away ") {
                moved(302, &to)
            } else if head.starts_with("GET /next ") {
                moved(302, "away")
            } else {
                moved(301, "/next")
            }
        })
        .await;
        let allowed = [server.address, (ALLOWED, port).into()];
        let client = GuardedClient::with_look_up(&allowed, |host| async move {
            Ok(vec![if host == "inside.test" { IpAddr::from([127, 0, 0, 1]) } else { [1, 1, 1, 1].into() }])
        })
        .unwrap();
        assert_eq!(refusal(&client, get(&server.url("/")).follow_redirects()).await, rule, "{location}");
        assert_eq!(server.connections().await, 3, "{location}");
    }
    assert_eq!(forbidden.connections().await, 0);
}

#[tokio::test]
async fn who_asks_for_https_is_not_served_over_http() {
    let server = Server::start(any_port(ALLOWED), |_| ok("plain")).await;
    assert_eq!(refusal(&client(&[server.address]), get(&server.url("/")).https_only()).await, Rule::Https);
    assert_eq!(server.connections().await, 0);
}

#[tokio::test]
async fn headers_go_along_within_an_origin_and_are_left_behind_at_its_border() {
    let key = HeaderName::from_static("x-api-key");
    let carried = |head: &str| {
        let head = head.to_ascii_lowercase();
        ["authorization: bearer secret", "x-api-key: secret", "cookie: secret"]
            .iter()
            .filter(|line| head.contains(**line))
            .count()
    };

    let other = Server::start(any_port(ALSO_ALLOWED), |head| {
        let home = head.split(['?', ' ']).nth(2).unwrap();
        moved(307, &format!("{home}/back"))
    })
    .await;
    let away = other.address;
    let home = Server::start(any_port(ALLOWED), move |head| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        if head.starts_with("GET /back ") {
            ok("home again")
        } else if head.starts_with("GET /leave ") {
            moved(307, &format!("http://{away}/?http://{host}"))
        } else {
            moved(307, "/leave")
        }
    })
    .await;
    let client = client(&[home.address, away]);
    let request = get(&home.url("/"))
        .follow_redirects()
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer secret"))
        .header(COOKIE, HeaderValue::from_static("secret"))
        .header(key, HeaderValue::from_static("secret"));
    assert_eq!(text(&client, request).await.unwrap(), "home again");

    let at_home: Vec<usize> = home.heads().iter().map(|head| carried(head)).collect();
    assert_eq!(at_home, [3, 3, 0], "once left behind, they stay behind");
    assert_eq!(other.heads().iter().map(|head| carried(head)).collect::<Vec<_>>(), [0]);
}
