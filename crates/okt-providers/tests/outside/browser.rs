//! Requests that look like a browser's are held to all that others are held to.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use okt_config::Config;
use okt_model::Error;
use okt_providers::resolution::Resolver;
use okt_providers::{FetchError, GuardedClient, Profile, Request, Rule, Timeouts, Wait};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::server::{
    ALLOWED, QUICK, Server, any_port, client, common_port, get, moved, ok, packed, refusal, text,
};

const FORBIDDEN: [u8; 4] = [127, 0, 0, 1];

fn like_chrome(url: &str) -> Request {
    get(url).like(Profile::named("chrome").unwrap())
}

#[tokio::test]
async fn it_says_it_is_a_browser() {
    let server = Server::start(any_port(ALLOWED), |_| ok("hi")).await;
    let client = client(&[server.address]);
    let url = server.url("/page?q=1#part");
    assert_eq!(text(&client, like_chrome(&url)).await.unwrap(), "hi");
    let head = &server.heads()[0];
    assert!(head.starts_with("GET /page?q=1 HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("mozilla/5.0") && head.contains("chrome/") && !head.contains("okt"), "{head}");
    assert!(head.contains("accept-encoding: gzip\r\n"), "only what is counted: {head}");
}

/// The first cipher suite that a client offers.
async fn first_cipher(request: impl FnOnce(&str) -> Request) -> u16 {
    let listener = TcpListener::bind(any_port(ALLOWED)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let hello = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut hello = [0; 128];
        socket.read_exact(&mut hello).await.unwrap();
        hello
    });
    let error = client(&[address]).send(request(&format!("https://{address}/"))).await.err().unwrap();
    assert!(matches!(error, FetchError::Tls { .. } | FetchError::Unreachable { .. }), "{error:?}");
    let hello = hello.await.unwrap();
    // Record and handshake headers, version, random, then the session with its length, then the suites with theirs.
    let suites = 9 + 2 + 32 + 1 + usize::from(hello[43]) + 2;
    u16::from_be_bytes([hello[suites], hello[suites + 1]])
}

#[tokio::test]
async fn its_handshake_is_that_of_a_browser() {
    // Chrome begins with a suite that does not exist, to keep servers on their toes.
    let is_grease = |suite: u16| suite & 0x0f0f == 0x0a0a && suite >> 8 == suite & 0xff;
    assert!(is_grease(first_cipher(like_chrome).await));
    assert!(!is_grease(first_cipher(get).await));
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let forbidden = Server::start(any_port(FORBIDDEN), |_| ok("inside")).await;
    let port = forbidden.address.port();
    let allowed: SocketAddr = (ALLOWED, port).into();
    let client =
        GuardedClient::with_look_up(&[allowed], |_| async { Ok(vec![IpAddr::from(FORBIDDEN)]) }).unwrap();
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "10.0.0.1",
        "inside.test",
        "①②⑦.1",
    ] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(refusal(&client, like_chrome(&url)).await, Rule::Private, "{host}");
        let to = url.clone();
        let server = Server::start(any_port(ALLOWED), move |_| moved(302, &to)).await;
        let lenient = GuardedClient::with_look_up(&[allowed, server.address], |_| async {
            Ok(vec![IpAddr::from(FORBIDDEN)])
        });
        let request = like_chrome(&server.url("/")).follow_redirects();
        assert_eq!(refusal(&lenient.unwrap(), request).await, Rule::Private, "{host}");
    }
    assert_eq!(forbidden.connections().await, 0);
}

#[tokio::test]
async fn unasked_a_redirect_is_only_an_answer() {
    let server = Server::start(any_port(ALLOWED), |_| moved(302, "/again")).await;
    let answer = client(&[server.address]).send(like_chrome(&server.url("/"))).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(server.connections().await, 1);
}

#[tokio::test]
async fn a_name_that_turns_private_after_its_check_is_never_connected_to() {
    let port = common_port(ALLOWED, FORBIDDEN);
    let outside = Server::start((ALLOWED, port), |_| ok("outside")).await;
    let inside = Server::start((FORBIDDEN, port), |_| ok("inside")).await;
    let times = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&times);
    let client = GuardedClient::with_look_up(&[outside.address], move |_| {
        let mut times = counted.lock().unwrap();
        *times += 1;
        let answer = IpAddr::from(if *times % 2 == 1 { ALLOWED } else { FORBIDDEN });
        async move { Ok(vec![answer]) }
    })
    .unwrap();
    for n in 0..200 {
        let request = like_chrome(&format!("http://turning.test:{port}/"));
        if n % 2 == 0 {
            assert_eq!(text(&client, request).await.unwrap(), "outside");
        } else {
            assert_eq!(refusal(&client, request).await, Rule::Private);
        }
    }
    assert_eq!(*times.lock().unwrap(), 200, "one look-up each");
    assert_eq!((outside.connections().await, inside.connections().await), (100, 0));
}

#[tokio::test]
async fn the_limits_hold() {
    let fetched = async |answer: Vec<u8>, limit: u64| {
        let server = Server::start(any_port(ALLOWED), move |_| answer.clone()).await;
        text(&client(&[server.address]), like_chrome(&server.url("/")).max_bytes(limit)).await
    };
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&vec![b'x'; 4 * 1024 * 1024]).unwrap();
    let bomb = packed("gzip", &packer.finish().unwrap());
    let unannounced = [b"HTTP/1.1 200 OK\r\n\r\n", "x".repeat(101).as_bytes()].concat();

    assert_eq!(fetched(ok(&"x".repeat(100)), 100).await.unwrap().len(), 100);
    for large in [ok(&"x".repeat(101)), unannounced] {
        let error = fetched(large, 100).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { limit: 100 }), "{error:?}");
    }
    let error = fetched(bomb, 64 * 1024 * 1024).await.unwrap_err();
    assert!(matches!(error, FetchError::Bomb { .. }), "{error:?}");
    for encoding in ["br", "zstd", "deflate"] {
        let error = fetched(packed(encoding, b"x"), 100).await.unwrap_err();
        assert!(matches!(error, FetchError::Encoding { .. }), "{error:?}");
    }
    for cut in [&b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ncut"[..], b"SSH-2.0-OpenSSH\r\n", b""] {
        let error = fetched(cut.to_vec(), 100).await.unwrap_err();
        assert!(matches!(error, FetchError::Interrupted(_)), "{error:?}");
    }
    let nobody = std::net::TcpListener::bind(any_port(ALLOWED)).unwrap().local_addr().unwrap();
    let request = like_chrome(&format!("http://{nobody}/?key=secret"));
    let error = text(&client(&[nobody]), request).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn it_does_not_wait_for_ever() {
    const SHORT: Duration = Duration::from_millis(300);
    let silent = Server::serve(any_port(ALLOWED), |_, socket| async move {
        std::future::pending::<()>().await;
        drop(socket);
    })
    .await;
    let stops = Server::serve(any_port(ALLOWED), |_, mut socket| async move {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nsomething").await;
        std::future::pending::<()>().await;
    })
    .await;
    for (server, scheme, timeouts, waited) in [
        (&silent, "http", Timeouts { total: SHORT, ..QUICK }, Wait::Total),
        (&stops, "http", Timeouts { idle: SHORT, ..QUICK }, Wait::Idle),
        // A handshake that is never answered.
        (&silent, "https", Timeouts { connect: SHORT, ..QUICK }, Wait::Connect),
    ] {
        let url = server.url("/").replace("http", scheme);
        let error = text(&client(&[server.address]), like_chrome(&url).timeouts(timeouts)).await.unwrap_err();
        assert!(matches!(error, FetchError::TimedOut { wait, .. } if wait == waited), "{error:?}");
    }
}

/// The environment can't be changed from inside, so this test runs itself again in another one.
#[tokio::test]
async fn a_proxy_in_the_environment_is_not_used() {
    const NAME: &str = "browser::a_proxy_in_the_environment_is_not_used";
    const INNER: &str = "OKT_TEST_BEHIND_PROXY";
    if std::env::var_os(INNER).is_some() {
        let server = Server::start(any_port(ALLOWED), |_| ok("direct")).await;
        assert_eq!(text(&client(&[server.address]), like_chrome(&server.url("/"))).await.unwrap(), "direct");
        return;
    }
    let proxy = Server::start(any_port(FORBIDDEN), |_| ok("by proxy")).await;
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

#[tokio::test]
async fn a_browser_that_nobody_knows_is_refused_at_the_start() {
    for known in ["chrome", "chrome_149", "firefox", "firefox_128", "safari", "safari_18", "edge", "opera"] {
        assert!(Profile::named(known).is_ok(), "{known}");
    }
    assert_eq!(format!("{:?}", Profile::named("safari").unwrap()), "Profile(Safari26_4)");
    for unknown in ["Chrome", "chrome_", "netscape", "chrome_1", "chrome_149 "] {
        let mut config = Config::default();
        config.providers.resolution.tls.impersonate = unknown.into();
        let Err(Error::Operator(told)) = Resolver::new(&config, client(&[])) else { panic!("{unknown}") };
        let expected = format!("providers.resolution.tls.impersonate: no browser {unknown:?} is known;");
        assert!(told.starts_with(&expected), "{told}");
    }
}
