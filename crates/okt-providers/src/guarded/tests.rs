//! TLS, against a server whose certificate is made for the test. In here, because the authorities that a client trusts
//! are nobody else's to choose.

use std::process::Command;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const HERE: [u8; 4] = [127, 77, 0, 1];

/// Serves `answer` as good.test; tells where, and by which certificate it is to be known.
async fn serve(answer: &'static str) -> (SocketAddr, CertificateDer<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .current_dir(folder.path())
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=okt".split(' '))
        .args("-addext subjectAltName=DNS:good.test -addext basicConstraints=critical,CA:FALSE".split(' '))
        .args("-keyout key.pem -out cert.pem".split(' '))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let certificate = CertificateDer::from_pem_file(folder.path().join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();

    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((IpAddr::from(HERE), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(answer.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    });
    (address, certificate)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Knows every name as the address of these servers.
fn client(allowed: &[SocketAddr], trusted: Option<CertificateDer<'static>>) -> GuardedClient {
    let mut client =
        GuardedClient::with_look_up(allowed, |_| async { Ok(vec![IpAddr::from(HERE)]) }).unwrap();
    if let Some(trusted) = trusted {
        client.authorities = Authorities::only(&trusted);
        let mut roots = RootCertStore::empty();
        roots.add(trusted).unwrap();
        client.tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    }
    client
}

#[tokio::test]
async fn a_certificate_must_be_vouched_for_and_be_for_this_name() {
    let (address, certificate) = serve("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsafe").await;
    let port = address.port();
    let good = format!("https://good.test:{port}/");
    let plain = |url: &str| Request::get(url).https_only();
    let like_chrome = |url: &str| plain(url).like(Profile::named("chrome").unwrap());

    let trusting = client(&[address], Some(certificate));
    for request in [plain(&good), like_chrome(&good)] {
        assert_eq!(trusting.send(request).await.unwrap().bytes().await.unwrap(), b"safe");
    }
    for request in [plain(&good), like_chrome(&good)] {
        let error = client(&[address], None).send(request).await.err().unwrap();
        assert!(matches!(error, FetchError::Tls { .. }), "{error:?}");
    }
    for other in [format!("https://evil.test:{port}/"), format!("https://{address}/")] {
        for request in [plain(&other), like_chrome(&other)] {
            let error = trusting.send(request).await.err().unwrap();
            assert!(matches!(error, FetchError::Tls { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_for_those_who_do_not_ask_for_https() {
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://good.test/\r\ncontent-length: 0\r\n\r\n";
    let (address, certificate) = serve(moved).await;
    let client = client(&[address], Some(certificate));
    let url = format!("https://good.test:{}/", address.port());
    let refused = |answer: Result<Response, FetchError>| match answer.map(|answer| answer.status) {
        Err(FetchError::Refused { rule, .. }) => rule,
        other => panic!("{other:?}"),
    };
    let strict = client.send(Request::get(&url).follow_redirects().https_only()).await;
    assert_eq!(refused(strict), Rule::Https);
    // The next rule in line: port 80 of this address is not on the list.
    let lenient = client.send(Request::get(&url).follow_redirects()).await;
    assert_eq!(refused(lenient), Rule::Private);
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart() {
    let listener = TcpListener::bind((IpAddr::from(HERE), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            // Until the other side has had enough.
            let _ = socket.read_to_end(&mut Vec::new()).await;
        }
    });
    let url = format!("https://{address}/");
    for request in [Request::get(&url), Request::get(&url).like(Profile::named("chrome").unwrap())] {
        let error = client(&[address], None).send(request).await.err().unwrap();
        assert!(matches!(error, FetchError::Tls { .. }), "{error:?}");
    }
}
