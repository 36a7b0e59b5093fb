//! What the other side sees of us, and what we say when it can't be understood.

use std::process::Command;

use okt_providers::FetchError;

use crate::server::{ALLOWED, Server, any_port, client, get, ok, text};

#[tokio::test]
async fn a_request_says_who_asks_and_keeps_no_cookie() {
    let server = Server::start(any_port(ALLOWED), |_| {
        b"HTTP/1.1 200 OK\r\nset-cookie: id=1\r\ncache-control: max-age=60\r\ncontent-length: 2\r\n\r\nhi"
            .to_vec()
    })
    .await;
    let client = client(&[server.address]);
    for _ in 0..2 {
        let response = client.send(get(&server.url("/page?q=1#part"))).await.unwrap();
        assert_eq!(
            (response.status.as_u16(), &response.headers["cache-control"]),
            (200, &"max-age=60".parse().unwrap())
        );
        assert_eq!(response.bytes().await.unwrap(), b"hi");
    }
    for head in server.heads() {
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("get /page?q=1 http/1.1\r\n"), "{head}");
        assert!(head.contains(concat!("user-agent: okt/", env!("CARGO_PKG_VERSION"), "\r\n")), "{head}");
        assert!(head.contains("accept-encoding: gzip\r\n"), "{head}");
        assert!(!head.contains("cookie") && !head.contains("referer"), "{head}");
    }
}

#[tokio::test]
async fn what_goes_wrong_has_a_name() {
    for answer in [&b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ncut"[..], b"SSH-2.0-OpenSSH\r\n", b""] {
        let server = Server::start(any_port(ALLOWED), |_| answer.to_vec()).await;
        let error = text(&client(&[server.address]), get(&server.url("/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::Interrupted(_)), "{error:?}");
    }
    // Bound once, so free, and nobody listens there now.
    let nobody = std::net::TcpListener::bind(any_port(ALLOWED)).unwrap().local_addr().unwrap();
    let error = text(&client(&[nobody]), get(&format!("http://{nobody}/?key=secret"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

/// The environment can't be changed from inside, so this test runs itself again in another one.
#[tokio::test]
async fn a_proxy_in_the_environment_is_not_used() {
    const NAME: &str = "requests::a_proxy_in_the_environment_is_not_used";
    const INNER: &str = "OKT_TEST_BEHIND_PROXY";
    if std::env::var_os(INNER).is_some() {
        let server = Server::start(any_port(ALLOWED), |_| ok("direct")).await;
        assert_eq!(text(&client(&[server.address]), get(&server.url("/"))).await.unwrap(), "direct");
        return;
    }
    let proxy = Server::start(any_port([127, 0, 0, 1]), |_| ok("by proxy")).await;
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([NAME, "--exact"]).env(INNER, "1").env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(name, proxy.url(""));
    }
    let output = tokio::task::spawn_blocking(move || again.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(proxy.connections().await, 0);
}
