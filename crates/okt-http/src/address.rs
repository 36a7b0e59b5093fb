//! Who is on the other end of the wire.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{Extensions, HeaderMap};
use ipnet::IpNet;

/// The address a request came from: the peer, or what a trusted proxy says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

/// The address that the request came in at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAddress(pub SocketAddr);

impl ClientAddress {
    /// What one subscriber has: an IPv4 address, or an IPv6 network of which every address is theirs.
    pub fn subscriber(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        }
    }

    /// Walks `X-Forwarded-For` from the right past trusted proxies; an untrusted peer's header is ignored,
    /// because anybody can write one.
    pub(crate) fn of(headers: &HeaderMap, extensions: &Extensions, trusted: &[IpNet]) -> Self {
        let peer = extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map_or(IpAddr::from([0, 0, 0, 0]), |info| info.0.ip().to_canonical());
        let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
        if !is_trusted(&peer) {
            return Self(peer);
        }
        let mut address = peer;
        let hops = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        for hop in hops.flat_map(|line| line.split(',')).collect::<Vec<_>>().into_iter().rev() {
            let Ok(hop) = hop.trim().parse::<IpAddr>() else {
                break;
            };
            address = hop.to_canonical();
            if !is_trusted(&address) {
                break;
            }
        }
        Self(address)
    }
}

/// Whether whoever sent the request sits at this machine and nothing said that it stands in between. They also have to
/// call this machine by a name that only it has: a page of a stranger whose name leads here for a moment makes a
/// browser on this machine send requests too, with that name as their host.
pub fn is_local(parts: &Parts) -> bool {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
    peer.is_some_and(|peer| peer.is_loopback())
        && !FORWARDING.iter().any(|name| parts.headers.contains_key(*name))
        && is_called_local(parts)
}

/// HTTP/2 has the host in the address of the request. Of several hosts none is believed.
fn is_called_local(parts: &Parts) -> bool {
    let written = parts.headers.get_all(HOST).iter().map(|host| Authority::try_from(host.as_bytes()).ok());
    let mut hosts = written.chain(parts.uri.authority().cloned().map(Some)).peekable();
    hosts.peek().is_some() && hosts.all(|host| host.is_some_and(|host| is_loopback(host.host())))
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// What proxies add to the requests of others.
const FORWARDING: [&str; 7] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "cf-connecting-ip",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, peer: &str, headers: &[(&'static str, &str)]) -> Parts {
        let (mut parts, ()) = http::Request::builder().uri(uri).body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
        for (name, value) in headers {
            parts.headers.append(*name, value.parse().unwrap());
        }
        parts
    }

    #[test]
    fn only_a_peer_on_this_machine_without_a_proxy_is_local() {
        for (peer, header, expected) in [
            ("127.0.0.1", None, true),
            ("127.8.8.8", None, true),
            ("::1", None, true),
            ("::ffff:127.0.0.1", None, true),
            ("203.0.113.9", None, false),
            ("10.0.0.1", None, false),
            ("127.0.0.1", Some("x-forwarded-for"), false),
            ("127.0.0.1", Some("forwarded"), false),
            ("::1", Some("via"), false),
            ("127.0.0.1", Some("x-request-id"), true),
        ] {
            let mut headers = vec![("host", "localhost:8080")];
            headers.extend(header.map(|name| (name, "127.0.0.1")));
            assert_eq!(is_local(&request("/", peer, &headers)), expected, "{peer} {header:?}");
        }
        let mut unknown = request("/", "127.0.0.1", &[("host", "localhost")]);
        unknown.extensions.clear();
        assert!(!is_local(&unknown), "one that nobody knows is not");
    }

    #[test]
    fn only_a_request_to_a_name_of_this_machine_alone_is_local() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("127.0.0.1:8080", true),
            ("127.8.8.8", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]", true),
            ("attacker.example", false),
            ("attacker.example:8080", false),
            ("localhost.attacker.example", false),
            ("127.0.0.1.attacker.example:8080", false),
            ("localhost@attacker.example", false),
            ("192.168.1.5:8080", false),
            ("[2001:db8::1]", false),
            ("0.0.0.0:8080", false),
            ("", false),
        ] {
            assert_eq!(is_local(&request("/", "127.0.0.1", &[("host", host)])), expected, "{host}");
        }
        let twice = [("host", "localhost"), ("host", "attacker.example")];
        assert!(!is_local(&request("/", "127.0.0.1", &twice)), "one of two hosts is a stranger's");
        assert!(!is_local(&request("/", "127.0.0.1", &[])), "no host at all");
        assert!(is_local(&request("http://localhost:8080/", "::1", &[])), "as HTTP/2 says it");
        assert!(
            !is_local(&request("http://attacker.example/", "::1", &[("host", "localhost")])),
            "two that differ"
        );
    }

    #[test]
    fn a_subscriber_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ] {
            let found = ClientAddress(address.parse().unwrap()).subscriber();
            assert_eq!(found, expected.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        for (peer, forwarded, expected) in [
            ("203.0.113.9", "1.2.3.4", "203.0.113.9"),
            ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "1.2.3.4, 10.0.0.2", "1.2.3.4"),
            ("10.0.0.1", "spoofed, garbage", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("::ffff:10.0.0.1", "2001:db8::7", "2001:db8::7"),
        ] {
            let mut extensions = Extensions::new();
            extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            let found = ClientAddress::of(&headers, &extensions, &trusted);
            assert_eq!(found.0, expected.parse::<IpAddr>().unwrap(), "{peer} {forwarded}");
        }
    }
}
