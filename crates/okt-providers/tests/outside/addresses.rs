//! Every way to write an address that is not public.

use std::io;
use std::net::{IpAddr, SocketAddr};

use okt_providers::{FetchError, GuardedClient, Rule};

use crate::server::{ALLOWED, Server, any_port, client, get, ok, refusal, text};

/// Each with the port of a listener that must never hear of it, so that nothing but the host is in question.
const PRIVATE_HOSTS: &[&str] = &[
    // 127.0.0.1 as people and parsers write it
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "00000177.0.0.1",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127。0。0。1",
    "127．0．0．1",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "127.0.0.\u{ad}1",
    // the rest of loopback, and "this host"
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "0",
    "0x0",
    "1",
    "0.255.255.255",
    // private, shared, link-local, metadata
    "10.0.0.1",
    "10.255.255.255",
    "167772161",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "169.254.170.2",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.65535",
    "192.0.0.192",
    // documentation, benchmarks, relays, multicast, reserved
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    // IPv6
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[100::1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[4000::1]",
    // IPv4 inside IPv6
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:0.0.0.0]",
    "[::127.0.0.1]",
    "[::a9fe:a9fe]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::8.8.8.8]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2002:c0a8:1::1]",
    // names, as the stub below knows them
    "localhost",
    "LOCALHOST",
    "localhost.",
    "any.localhost",
    "127.0.0.1.nip.test",
    "metadata.google.internal",
    "v6.test",
    "mapped.test",
];

/// The whole text of an address, `PORT` being that of the listener, and the rule that must refuse it.
const ADDRESSES: &[(&str, Rule)] = &[
    // as browsers mend them
    ("http:127.0.0.1:PORT", Rule::Private),
    ("http:/127.0.0.1:PORT/", Rule::Private),
    ("http:///127.0.0.1:PORT/", Rule::Private),
    ("http:\\\\127.0.0.1:PORT\\", Rule::Private),
    ("  http://127.0.0.1:PORT/  ", Rule::Private),
    ("ht\ntp://127.0.0\t.1:PORT/", Rule::Private),
    ("HTTP://127.0.0.1:PORT/", Rule::Private),
    ("http://127.0.0.1:0PORT/", Rule::Private),
    ("https://127.0.0.1:PORT/", Rule::Private),
    ("http://127.0.0.1:PORT\\@public.test/", Rule::Private),
    ("http://127.0.0.1:PORT?@public.test/", Rule::Private),
    ("http://127.0.0.1:PORT#@public.test/", Rule::Private),
    ("http://@127.0.0.1:PORT/", Rule::Private),
    ("http://127.0.0.1/", Rule::Private),
    ("https://[::1]/", Rule::Private),
    ("http://mixed.test/", Rule::Private),
    ("https://mixed-other-way.test/", Rule::Private),
    // credentials
    ("http://public.test@127.0.0.1:PORT/", Rule::Credentials),
    ("http://public.test:80@127.0.0.1:PORT/", Rule::Credentials),
    ("http://127.0.0.1:PORT@public.test/", Rule::Credentials),
    ("http://:secret@public.test/", Rule::Credentials),
    ("http://user:secret@public.test/", Rule::Credentials),
    ("http://%75ser@public.test/", Rule::Credentials),
    // zone ids and other things that are no host
    ("http://[fe80::1%25lo]:PORT/", Rule::Malformed),
    ("http://[fe80::1%lo]:PORT/", Rule::Malformed),
    ("http://[::1%251]:PORT/", Rule::Malformed),
    ("http://[::1]%25lo:PORT/", Rule::Malformed),
    ("http://[::1:PORT/", Rule::Malformed),
    ("http://[v1.x]:PORT/", Rule::Malformed),
    ("http://::1:PORT/", Rule::Malformed),
    ("http://256.0.0.1:PORT/", Rule::Malformed),
    ("http://127.0.0.0.1:PORT/", Rule::Malformed),
    ("http://0x100000000:PORT/", Rule::Malformed),
    ("http://4294967296:PORT/", Rule::Malformed),
    ("http://127.0.0.08:PORT/", Rule::Malformed),
    ("http://public.test%00.localhost:PORT/", Rule::Malformed),
    ("http://public test:PORT/", Rule::Malformed),
    ("http://127.0.0.1:99999/", Rule::Malformed),
    ("http://", Rule::Malformed),
    ("//127.0.0.1:PORT/", Rule::Malformed),
    ("127.0.0.1:PORT", Rule::Malformed),
    ("", Rule::Malformed),
    // schemes
    ("localhost:PORT", Rule::Scheme),
    ("file:///etc/passwd", Rule::Scheme),
    ("ftp://127.0.0.1:PORT/", Rule::Scheme),
    ("gopher://127.0.0.1:PORT/_x", Rule::Scheme),
    ("dict://127.0.0.1:PORT/", Rule::Scheme),
    ("ws://127.0.0.1:PORT/", Rule::Scheme),
    ("wss://public.test/", Rule::Scheme),
    ("unix:/run/postgresql", Rule::Scheme),
    ("data:text/plain,hello", Rule::Scheme),
    ("javascript:alert(1)", Rule::Scheme),
    ("http+unix://127.0.0.1:PORT/", Rule::Scheme),
    // ports: the one that another address has on the list is no port for this one
    ("http://1.1.1.1:PORT/", Rule::Port),
    ("http://public.test:PORT/", Rule::Port),
    ("http://1.1.1.1:22/", Rule::Port),
    ("http://public.test:25/", Rule::Port),
    ("http://public.test:0/", Rule::Port),
    ("http://public.test:8080/", Rule::Port),
    ("https://public.test:8443/", Rule::Port),
    ("https://public.test:65535/", Rule::Port),
];

async fn stub(host: String) -> io::Result<Vec<IpAddr>> {
    let addresses: &[&str] = match host.as_str() {
        "localhost" | "localhost." | "any.localhost" | "127.0.0.1.nip.test" => &["127.0.0.1"],
        "metadata.google.internal" => &["169.254.169.254"],
        "v6.test" => &["::1"],
        "mapped.test" => &["::ffff:127.0.0.1"],
        "mixed.test" => &["1.1.1.1", "127.0.0.1"],
        "mixed-other-way.test" => &["127.0.0.1", "1.1.1.1"],
        "public.test" => &["1.1.1.1"],
        "empty.test" => &[],
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let forbidden = Server::start(any_port([127, 0, 0, 1]), |_| ok("inside")).await;
    let port = forbidden.address.port();
    let also_forbidden = Server::start("[::1]:0".parse::<SocketAddr>().unwrap(), |_| ok("inside")).await;
    let port_v6 = also_forbidden.address.port();
    // The ports are open, for an address that nobody asks for.
    let allowed = [SocketAddr::from((ALLOWED, port)), SocketAddr::from((ALLOWED, port_v6))];
    let client = GuardedClient::with_look_up(&allowed, stub).unwrap();

    let mut tried = 0;
    for port in [port, port_v6] {
        for host in PRIVATE_HOSTS {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}:{port}/");
                assert_eq!(refusal(&client, get(&url)).await, Rule::Private, "{url}");
                tried += 1;
            }
        }
        for (address, rule) in ADDRESSES {
            let url = address.replace("PORT", &port.to_string());
            assert_eq!(refusal(&client, get(&url)).await, *rule, "{url:?}");
            tried += 1;
        }
    }
    assert!(PRIVATE_HOSTS.len() + ADDRESSES.len() >= 60 && tried >= 240);
    assert_eq!(forbidden.connections().await, 0);
    assert_eq!(also_forbidden.connections().await, 0);
}

#[tokio::test]
async fn a_name_without_an_address_is_not_fetched() {
    let client = GuardedClient::with_look_up(&[], stub).unwrap();
    for url in ["http://nowhere.test/", "http://empty.test/"] {
        let error = client.send(get(url)).await.err().unwrap();
        assert!(matches!(error, FetchError::Unresolvable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_systems_own_name_for_loopback_is_refused() {
    let forbidden = Server::start(any_port([127, 0, 0, 1]), |_| ok("inside")).await;
    let port = forbidden.address.port();
    let client = GuardedClient::new(&[(ALLOWED, port).into()]).unwrap();
    assert_eq!(refusal(&client, get(&format!("http://localhost:{port}/"))).await, Rule::Private);
    assert_eq!(forbidden.connections().await, 0);
}

#[tokio::test]
async fn what_the_operator_lists_is_fetched_and_nothing_beside_it() {
    let listed = Server::start(any_port(ALLOWED), |_| ok("fixture")).await;
    let port = listed.address.port();
    let beside = Server::start((ALLOWED, 0), |_| ok("another")).await;
    let client = client(&[listed.address]);

    assert_eq!(text(&client, get(&listed.url("/"))).await.unwrap(), "fixture");
    assert_eq!(refusal(&client, get(&beside.url("/"))).await, Rule::Port);
    for host in ["127.77.0.2", "[::ffff:127.77.0.1]"] {
        assert_eq!(refusal(&client, get(&format!("http://{host}:{port}/"))).await, Rule::Private);
    }
    assert_eq!(beside.connections().await, 0);
    assert_eq!(listed.connections().await, 1);
}

#[tokio::test]
async fn a_refusal_repeats_neither_path_nor_password_nor_inner_address() {
    let client = GuardedClient::with_look_up(&[], stub).unwrap();
    for url in [
        "http://user:secret@public.test/secret?key=secret#secret",
        "http://metadata.google.internal/secret?key=secret",
        "data:text/plain,secret",
        "secret",
    ] {
        let error = client.send(get(url)).await.err().unwrap();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("secret") && !text.contains("169.254"), "{text}");
        }
    }
}
