//! Which addresses may be fetched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

use super::error::Rule;

#[derive(Clone)]
pub(super) struct Guard {
    allowed: Arc<[SocketAddr]>,
}

impl Guard {
    pub(super) fn new(allowed: &[SocketAddr]) -> Self {
        Self { allowed: allowed.into() }
    }

    /// What can be told before a look-up. `url` has read the host by now: 0x7f.1 is 127.0.0.1 here.
    pub(super) fn check_url<'a>(&self, url: &'a Url, https_only: bool) -> Result<(Host<&'a str>, u16), Rule> {
        match url.scheme() {
            "http" if https_only => return Err(Rule::Https),
            "http" | "https" => {}
            _ => return Err(Rule::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Rule::Credentials);
        }
        let (host, port) = url.host().zip(url.port_or_known_default()).ok_or(Rule::Malformed)?;
        if !is_web(port) && !self.allowed.iter().any(|allowed| allowed.port() == port) {
            return Err(Rule::Port);
        }
        Ok((host, port))
    }

    pub(super) fn check_address(&self, address: SocketAddr) -> Result<(), Rule> {
        if self.allowed.iter().any(|allowed| (allowed.ip(), allowed.port()) == (address.ip(), address.port()))
        {
            Ok(())
        } else if !is_public(address.ip()) {
            Err(Rule::Private)
        } else if !is_web(address.port()) {
            Err(Rule::Port)
        } else {
            Ok(())
        }
    }
}

/// As much of an address as may be repeated: paths and queries hold keys at times, and the rest may hold passwords.
pub(super) fn place(url: &Url) -> String {
    match url.host() {
        Some(_) if url.origin().is_tuple() => url.origin().ascii_serialization(),
        _ => format!("{}:", url.scheme()),
    }
}

const fn is_web(port: u16) -> bool {
    matches!(port, 80 | 443)
}

const fn v4(a: u8, b: u8, c: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

const PRIVATE_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),       // this network; Linux connects to itself
    v4(10, 0, 0, 8),      // private
    v4(100, 64, 0, 10),   // shared by customers of a provider; metadata of some clouds
    v4(127, 0, 0, 8),     // loopback
    v4(169, 254, 0, 16),  // link-local; metadata of most clouds
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 88, 99, 24),  // 6to4 relays
    v4(192, 168, 0, 16),  // private
    v4(198, 18, 0, 15),   // benchmarks
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 4),     // multicast
    v4(240, 0, 0, 4),     // reserved, broadcast
];

/// All that is public in IPv6 lies in here, but for translated IPv4. Outside are loopback, unique local, link-local,
/// site-local, multicast, discard, and whatever is invented next.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

const PRIVATE_V6: [Ipv6Net; 3] = [
    v6(0x2001, 0, 23),     // protocol assignments, Teredo among them
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x3fff, 0, 20),     // documentation
];

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !PRIVATE_V4.iter().any(|net| net.contains(&ip)),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(inner) => is_public(inner.into()),
            None => GLOBAL_V6.contains(&ip) && !PRIVATE_V6.iter().any(|net| net.contains(&ip)),
        },
    }
}

/// The IPv4 address that a translator or tunnel on the way would take out of this one.
const fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        // Mapped; compatible, with it :: and ::1, which 0.0.0.0/8 refuses; NAT64; 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(Ipv4Addr::from_bits((high as u32) << 16 | low as u32)),
        _ => None,
    }
}
