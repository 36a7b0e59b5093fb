//! Who is on the other end of the wire.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use http::Extensions;
use http::HeaderMap;
use ipnet::IpNet;

/// The address a request came from: the peer, or what a trusted proxy says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

/// The address that the request came in at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAddress(pub SocketAddr);

impl ClientAddress {
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

#[cfg(test)]
mod tests {
    use super::*;

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
