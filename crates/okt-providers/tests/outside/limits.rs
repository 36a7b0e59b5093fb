//! How much is read, and how long is waited.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use okt_providers::{FetchError, GuardedClient, Timeouts, Wait};
use tokio::io::AsyncWriteExt as _;

use crate::server::{ALLOWED, QUICK, Server, any_port, client, get, ok, packed, text};

const CAP: u64 = 64 * 1024;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What becomes of one answer, under a cap.
async fn fetched(answer: Vec<u8>, cap: u64) -> Result<String, FetchError> {
    let server = Server::start(any_port(ALLOWED), move |_| answer.clone()).await;
    text(&client(&[server.address]), get(&server.url("/")).max_bytes(cap)).await
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_cap_and_not_a_byte_larger() {
    for (over, fits) in [(0, true), (1, false)] {
        let body = "x".repeat(usize::try_from(CAP).unwrap() + over);
        let unannounced = [HEAD, body.as_bytes()].concat();
        for answer in [ok(&body), unannounced, packed("gzip", &gzip(body.as_bytes()))] {
            match fetched(answer, CAP).await {
                Ok(read) => assert!(fits && read == body),
                Err(FetchError::TooLarge { limit: CAP }) => assert!(!fits),
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_body_without_end_is_dropped_at_the_cap() {
    // The second is a gzip header whose file name never ends: much goes in and nothing comes out.
    for (encoding, start, filling) in
        [("identity", &b""[..], b'x'), ("gzip", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03", b'n')]
    {
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let server = Server::serve(any_port(ALLOWED), move |_, mut socket| {
            let counted = Arc::clone(&counted);
            async move {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n");
                socket.write_all(&[head.as_bytes(), start].concat()).await.unwrap();
                while socket.write_all(&[filling; 4096]).await.is_ok() {
                    counted.fetch_add(4096, Ordering::Relaxed);
                }
            }
        })
        .await;
        let error = text(&client(&[server.address]), get(&server.url("/")).max_bytes(CAP)).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { limit: CAP }), "{error:?}");
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 32 * 1024 * 1024, "{sent} bytes were taken");
    }
}

#[tokio::test]
async fn packed_text_is_unpacked() {
    let words: Vec<String> = (0..200_000).map(|n| (n * 7919 % 100_003).to_string()).collect();
    let body = words.join(" ");
    let answer = packed("gzip", &gzip(body.as_bytes()));
    assert!(answer.len() > 100_000 && body.len() > 1024 * 1024);
    let server = Server::start(any_port(ALLOWED), move |_| answer.clone()).await;
    let response = client(&[server.address]).send(get(&server.url("/"))).await.unwrap();
    assert!(!response.headers.contains_key("content-encoding"));
    assert!(!response.headers.contains_key("content-length"), "it was the length of something else");
    assert_eq!(response.bytes().await.unwrap(), body.as_bytes());
    assert_eq!(fetched(packed("gzip", b""), CAP).await.unwrap(), "");
}

#[tokio::test]
async fn a_decompression_bomb_is_dropped_after_the_first_mebibyte() {
    let bomb = gzip(&vec![0; 16 * 1024 * 1024]);
    assert!(bomb.len() < 20_000);
    let server = Server::start(any_port(ALLOWED), move |_| packed("gzip", &bomb)).await;
    let mut response = client(&[server.address]).send(get(&server.url("/"))).await.unwrap();
    let mut unpacked = 0;
    let error = loop {
        match response.chunk().await {
            Ok(piece) => unpacked += piece.unwrap().len(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, FetchError::Bomb { limit: 100 }), "{error:?}");
    // All of the bomb arrives at once, and 100 times its size is what it may become.
    assert!((1024 * 1024..=2 * 1024 * 1024).contains(&unpacked), "{unpacked}");
}

#[tokio::test]
async fn damaged_and_unknown_packing_is_refused() {
    let whole = gzip(b"a page");
    let cut = whole[..whole.len() - 1].to_vec();
    let mut wrong_sum = whole.clone();
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    let trailing = [whole.as_slice(), b"x"].concat();
    for body in [cut, wrong_sum, trailing, b"not gzip".to_vec()] {
        let error = fetched(packed("gzip", &body), CAP).await.unwrap_err();
        assert!(matches!(error, FetchError::Damaged), "{error:?}");
    }
    for encoding in ["br", "deflate", "zstd", "gzip, gzip", "gzip\r\ncontent-encoding: gzip"] {
        let error = fetched(packed(encoding, b""), CAP).await.unwrap_err();
        assert!(matches!(error, FetchError::Encoding { .. }), "{encoding}: {error:?}");
    }
    assert_eq!(fetched(packed("GZIP", &whole), CAP).await.unwrap(), "a page");
}

/// What was waited for in vain, with one of the limits made short.
async fn waited(client: &GuardedClient, url: &str, timeouts: Timeouts) -> Wait {
    match text(client, get(url).timeouts(timeouts)).await {
        Err(FetchError::TimedOut { wait, limit }) => {
            assert!(limit <= Duration::from_millis(400), "the limit that was made short");
            wait
        }
        other => panic!("{other:?}"),
    }
}

const SHORT: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_body_that_stops_is_given_up() {
    let server = Server::serve(any_port(ALLOWED), |_, mut socket| async move {
        socket.write_all(HEAD).await.unwrap();
        socket.write_all(b"something").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let client = client(&[server.address]);
    assert_eq!(waited(&client, &server.url("/"), Timeouts { idle: SHORT, ..QUICK }).await, Wait::Idle);
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_when_the_whole_takes_too_long() {
    let server = Server::serve(any_port(ALLOWED), |_, mut socket| async move {
        socket.write_all(HEAD).await.unwrap();
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let client = client(&[server.address]);
    assert_eq!(waited(&client, &server.url("/"), Timeouts { total: SHORT, ..QUICK }).await, Wait::Total);
}

#[tokio::test]
async fn redirects_do_not_start_the_clock_anew() {
    let server = Server::serve(any_port(ALLOWED), |_, mut socket| async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let _ = socket.write_all(&crate::server::moved(302, "/")).await;
    })
    .await;
    let request = get(&server.url("/")).follow_redirects().timeouts(Timeouts { total: SHORT, ..QUICK });
    let error = client(&[server.address]).send(request).await.err().unwrap();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Total, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let server = Server::serve(any_port(ALLOWED), |_, socket| async move {
        std::future::pending::<()>().await;
        drop(socket);
    })
    .await;
    let client = client(&[server.address]);
    let timeouts = Timeouts { total: SHORT, ..QUICK };
    assert_eq!(waited(&client, &server.url("/"), timeouts).await, Wait::Total);
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_given_up() {
    // It waits for the end of a head, which no TLS handshake has.
    let server = Server::start(any_port(ALLOWED), |_| ok("")).await;
    let timeouts = Timeouts { connect: SHORT, ..QUICK };
    let url = server.url("/").replace("http", "https");
    assert_eq!(waited(&client(&[server.address]), &url, timeouts).await, Wait::Connect);

    let client = GuardedClient::with_look_up(&[], |_| std::future::pending()).unwrap();
    assert_eq!(waited(&client, "http://never.test/", timeouts).await, Wait::Connect);
}
