//! Clients that are described by a document at the address that is their id, served over https from this machine by a
//! certificate that is made for the test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use okt_testkit::accounts::{count, register, sql};
use okt_testkit::oauth::{Browser, CALLBACK, code, error, exchange, refresh, request, tokens};
use okt_testkit::served::TestService;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use crate::oauth::{changed, given, stays};

const CLIENTS: &str = "SELECT count(*) FROM okt_system.oauth_clients";
/// Where a test in a process of its own finds its certificates.
const FOLDER: &str = "OKT_TEST_CERTIFICATES";

/// Which authorities a process trusts is read from its environment, and a process can't change its own. So the test
/// runs once more in a process that trusts the one of the test; what it returns there is where the certificates are,
/// and outside `None`, when all is done.
fn trusting<T>(_: T) -> Option<PathBuf> {
    if let Ok(folder) = std::env::var(FOLDER) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().unwrap();
    make_certificates(folder.path());
    let (_, name) = std::any::type_name::<T>().split_once("::").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("SSL_CERT_FILE", folder.path().join("authority.pem"))
        .env_remove("SSL_CERT_DIR")
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{out}{err}");
    None
}

/// An authority, and a certificate of it for this machine.
fn make_certificates(folder: &Path) {
    let openssl = |arguments: &str| {
        let made = Command::new("openssl").current_dir(folder).args(arguments.split(' ')).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    openssl(&format!("req -x509 {key} -subj /CN=authority -keyout authority.key -out authority.pem"));
    openssl(&format!(
        "req -x509 {key} -subj /CN=site -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
         -addext basicConstraints=critical,CA:FALSE -CA authority.pem -CAkey authority.key -keyout site.key \
         -out site.pem"
    ));
}

/// A server that answers every request the same, and counts who connects.
struct Site {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    connections: Arc<AtomicUsize>,
}

impl Site {
    fn start(certificates: &Path) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = CertificateDer::from_pem_file(certificates.join("site.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificates.join("site.key")).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            answer: Arc::default(),
            connections: Arc::default(),
        };
        let (config, answer, connections) =
            (Arc::new(config), Arc::clone(&site.answer), Arc::clone(&site.connections));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                connections.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                // Whoever hangs up early has seen enough.
                let _ = respond(socket, Arc::clone(&config), &answer);
            }
        });
        site
    }

    /// The address of the document.
    fn id(&self) -> String {
        format!("https://{}/client.json", self.address)
    }

    /// What the document says when nothing is wrong with it.
    fn document(&self) -> Value {
        json!({
            "client_id": self.id(),
            "client_name": "Ada's Agent",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
        })
    }

    fn answer(&self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        *self.answer.lock().unwrap() = answer.into_bytes();
    }

    fn serve(&self, document: &Value, caching: &str) {
        let headers = format!("content-type: application/json\r\ncache-control: {caching}\r\n");
        self.answer("200 OK", &headers, &document.to_string());
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// A service that may fetch from here.
    async fn service(&self) -> TestService {
        let here = self.address.to_string();
        TestService::product(&[("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE", &here)]).await
    }
}

fn respond(mut socket: TcpStream, config: Arc<rustls::ServerConfig>, answer: &[u8]) -> std::io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut tls = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    stream.write_all(answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[tokio::test]
async fn a_client_that_never_registered_is_let_in_by_its_document() {
    let Some(certificates) = trusting(a_client_that_never_registered_is_let_in_by_its_document) else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    let ada = register(&service, "ada").await;
    site.serve(&site.document(), "max-age=60");
    let id = site.id();

    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&id, "read")).await;
    let page = browser.sign_in(&service, &page, &ada.email).await;
    assert!(page.text.contains("Ada&#x27;s Agent"), "{}", page.text);
    assert!(page.text.contains(&site.address.to_string()), "who vouches for it: {}", page.text);

    let tokens = tokens(&service, &id, &ada.email, "read").await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(service.get_as(access, "/api/v1/users/me").await.json()["email"], ada.email);
    let next = refresh(&service, &id, tokens["refresh_token"].as_str().unwrap()).await;
    assert_eq!(next.status, 200, "{next:?}");
    let grants = service.get_as(&ada.token, "/api/v1/users/me/grants").await.json();
    assert_eq!(grants["data"][0]["client_id"], id);

    // It is held to what its document says.
    let elsewhere = changed(&request(&id, "read"), "redirect_uri", Some("https://evil.example/"));
    stays(&browser.ask(&service, &elsewhere).await, 400);
    assert_eq!(site.connections(), 1, "read once");
}

#[tokio::test]
async fn a_document_that_is_not_right_is_no_client_and_nothing_of_it_is_remembered() {
    let Some(certificates) =
        trusting(a_document_that_is_not_right_is_no_client_and_nothing_of_it_is_remembered)
    else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    let good = site.document();
    let with = |field: &str, value: Value| {
        let mut document = good.clone();
        document[field] = value;
        document.to_string()
    };
    let padded = |bytes: usize| {
        let document = with("padding", json!(""));
        let padding = "x".repeat(bytes - document.len());
        with("padding", json!(padding))
    };
    let json = "content-type: application/json\r\n";
    let id = site.id();
    let here = format!("location: https://{}/other.json\r\n{json}", site.address);
    let cases: Vec<(&str, &str, &str, String)> = vec![
        (
            "another client_id",
            "200 OK",
            json,
            with("client_id", json!("https://app.example.org/client.json")),
        ),
        ("client_id with a slash", "200 OK", json, with("client_id", json!(format!("{id}/")))),
        ("client_id in another case", "200 OK", json, with("client_id", json!(id.to_uppercase()))),
        ("no client_id", "200 OK", json, with("client_id", Value::Null)),
        ("a list of client_id", "200 OK", json, with("client_id", json!([id]))),
        ("a redirect", "302 Found", &here, good.to_string()),
        ("a permanent redirect", "308 Permanent Redirect", &here, good.to_string()),
        ("created", "201 Created", json, good.to_string()),
        ("partial", "206 Partial Content", json, good.to_string()),
        ("not found", "404 Not Found", json, good.to_string()),
        ("an error", "500 Internal Server Error", json, good.to_string()),
        ("too large", "200 OK", json, padded(64 * 1024 + 1)),
        ("no JSON", "200 OK", json, "client_id=1".to_owned()),
        ("a page", "200 OK", "content-type: text/html\r\n", "<!doctype html><title>404</title>".to_owned()),
        ("nothing", "200 OK", json, String::new()),
        ("a list", "200 OK", json, format!("[{good}]")),
        ("no redirect_uris", "200 OK", json, with("redirect_uris", json!([]))),
        ("a bad redirect_uri", "200 OK", json, with("redirect_uris", json!(["javascript:alert(1)"]))),
        ("a secret", "200 OK", json, with("token_endpoint_auth_method", json!("client_secret_basic"))),
        ("a NUL", "200 OK", json, with("client_uri", json!("https://app.example.org/\u{0}"))),
    ];
    for (number, (name, status, headers, body)) in cases.iter().enumerate() {
        site.answer(status, headers, body);
        let answer = Browser::default().ask(&service, &request(&id, "read")).await;
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        stays(&answer, 400);
        assert_eq!(site.connections(), number + 1, "{name}: one connection, no redirect followed");
    }
    assert_eq!(count(&service, CLIENTS).await, 0);
    let refused = exchange(&service, &id, "oktc_guess").await;
    assert_eq!((refused.status.as_u16(), error(&refused).as_str()), (401, "invalid_client"));

    // As soon as it is mended it works, and the largest one that fits does as well.
    site.answer("200 OK", json, &padded(64 * 1024));
    assert_eq!(Browser::default().ask(&service, &request(&id, "read")).await.status, 200);
    assert_eq!(count(&service, CLIENTS).await, 1);
}

#[tokio::test]
async fn an_id_that_is_no_https_address_with_a_path_is_not_fetched() {
    let Some(certificates) = trusting(an_id_that_is_no_https_address_with_a_path_is_not_fetched) else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    let address = site.address;
    for id in [
        format!("http://{address}/client.json"),
        format!("https://{address}"),
        format!("https://{address}/"),
        format!("https://{address}/client.json#fragment"),
        format!("https://user@{address}/client.json"),
        format!("https://user:word@{address}/client.json"),
        format!("https://{address}/a/../client.json"),
        format!("https://{address}/./client.json"),
        format!("HTTPS://{address}/client.json"),
        format!(" https://{address}/client.json"),
        format!("https:{address}/client.json"),
        format!("https://0x7f.1:{}/client.json", address.port()),
        format!("https://{address}/{}", "x".repeat(2000)),
    ] {
        site.serve(&json!({"client_id": id, "redirect_uris": [CALLBACK]}), "max-age=60");
        stays(&Browser::default().ask(&service, &request(&id, "read")).await, 400);
    }
    assert_eq!((site.connections(), count(&service, CLIENTS).await), (0, 0));
}

#[tokio::test]
async fn a_document_at_an_address_that_is_not_public_is_not_fetched() {
    let Some(certificates) = trusting(a_document_at_an_address_that_is_not_public_is_not_fetched) else {
        return;
    };
    let site = Site::start(&certificates);
    site.serve(&site.document(), "max-age=60");
    let port = site.address.port();
    let strict = TestService::product(&[]).await;
    let another = format!("127.0.0.1:{}", if port == 443 { 444 } else { 443 });
    let other = TestService::product(&[("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE", &another)]).await;
    for service in [&strict, &other] {
        for id in [
            site.id(),
            format!("https://localhost:{port}/client.json"),
            format!("https://[::1]:{port}/client.json"),
            format!("https://[::ffff:7f00:1]:{port}/client.json"),
            format!("https://0.0.0.0:{port}/client.json"),
        ] {
            stays(&Browser::default().ask(service, &request(&id, "read")).await, 400);
            let refused = exchange(service, &id, "oktc_guess").await;
            assert_eq!((refused.status.as_u16(), error(&refused).as_str()), (401, "invalid_client"), "{id}");
        }
        assert_eq!(count(service, CLIENTS).await, 0);
    }
    assert_eq!(site.connections(), 0);
    // It was there all the time.
    let service = site.service().await;
    assert_eq!(Browser::default().ask(&service, &request(&site.id(), "read")).await.status, 200);
    assert_eq!(site.connections(), 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_believed() {
    let Some(certificates) = trusting(a_certificate_that_nobody_vouches_for_is_not_believed) else { return };
    let other = tempfile::tempdir().unwrap();
    make_certificates(other.path());
    let (known, unknown) = (Site::start(&certificates), Site::start(other.path()));
    for (site, status) in [(&known, 200), (&unknown, 400)] {
        let service = site.service().await;
        site.serve(&site.document(), "max-age=60");
        let answer = Browser::default().ask(&service, &request(&site.id(), "read")).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(site.connections(), 1);
    }
}

#[tokio::test]
async fn a_document_is_believed_for_as_long_as_it_says_and_a_day_at_most() {
    let Some(certificates) = trusting(a_document_is_believed_for_as_long_as_it_says_and_a_day_at_most) else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    let id = site.id();
    let ask = async || Browser::default().ask(&service, &request(&id, "read")).await.status.as_u16();
    let left = "SELECT round(extract(epoch FROM stale_at - clock_timestamp()))::bigint FROM okt_system.oauth_clients";
    let forget = "UPDATE okt_system.oauth_clients SET stale_at = clock_timestamp() - interval '1 second'";
    for (caching, seconds) in [
        ("max-age=300", 300),
        ("public, Max-Age=300", 300),
        ("max-age=999999999", 86400),
        ("public", 3600),
        ("max-age=soon", 3600),
    ] {
        site.serve(&site.document(), caching);
        let before = site.connections();
        assert_eq!((ask().await, ask().await, ask().await), (200, 200, 200));
        assert_eq!(site.connections(), before + 1, "{caching}");
        let left = count(&service, left).await;
        assert!((seconds - 30..=seconds).contains(&left), "{caching}: {left}");
        sql(&service, forget).await;
    }
    for caching in ["no-store", "no-cache", "private, no-store, max-age=300", "max-age=0"] {
        site.serve(&site.document(), caching);
        let before = site.connections();
        assert_eq!((ask().await, ask().await), (200, 200));
        assert_eq!(site.connections(), before + 2, "{caching}");
    }
}

#[tokio::test]
async fn a_document_that_changed_or_went_away_counts_as_it_is_now() {
    let Some(certificates) = trusting(a_document_that_changed_or_went_away_counts_as_it_is_now) else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    let (id, ada) = (site.id(), register(&service, "ada").await);
    let forget = "UPDATE okt_system.oauth_clients SET stale_at = clock_timestamp() - interval '1 second'";
    site.serve(&site.document(), "max-age=300");
    let code = code(&service, &id, &ada.email, "read").await;

    // Another address: what was right before is not any more.
    let mut moved = site.document();
    moved["redirect_uris"] = json!(["https://app.example.org/callback"]);
    site.serve(&moved, "max-age=300");
    assert_eq!(Browser::default().ask(&service, &request(&id, "read")).await.status, 200, "still believed");
    sql(&service, forget).await;
    stays(&Browser::default().ask(&service, &request(&id, "read")).await, 400);
    assert_eq!(count(&service, CLIENTS).await, 1, "the same client");

    // Withdrawn: nobody is asked any more. Who was let in before goes on, because a document that is away for a moment
    // must not end what people gave.
    sql(&service, forget).await;
    site.answer("410 Gone", "", "");
    stays(&Browser::default().ask(&service, &request(&id, "read")).await, 400);
    assert_eq!(exchange(&service, &id, &code).await.status, 200);
    site.serve(&site.document(), "max-age=300");
    assert_eq!(
        Browser::default().ask(&service, &request(&id, "read")).await.status,
        200,
        "the failure is not kept"
    );
    assert_eq!(given(&service).await, (1, 1));
}

/// Strangers must not decide what we fetch: a request for tokens with an id that nobody knows costs a look-up.
#[tokio::test]
async fn a_request_for_tokens_reads_no_document() {
    let Some(certificates) = trusting(a_request_for_tokens_reads_no_document) else {
        return;
    };
    let site = Site::start(&certificates);
    let service = site.service().await;
    site.serve(&site.document(), "max-age=300");
    let refused = exchange(&service, &site.id(), "oktc_nothing").await;
    assert_eq!((refused.status.as_u16(), error(&refused).as_str()), (401, "invalid_client"));
    assert_eq!(count(&service, CLIENTS).await, 0);
}
