//! Which addresses may be fetched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

use super::error::Rule;

#[derive(Clone)]
pub(super) struct Guard {
    allowed: Arc<[SocketAddr]>,
    /// Nothing leaves this machine, not even the question what a name means.
    pub(super) offline: bool,
}

impl Guard {
    pub(super) fn new(allowed: &[SocketAddr]) -> Self {
        Self { allowed: allowed.into(), offline: false }
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
        if self.offline && !is_this_machine(&host) {
            return Err(Rule::Offline);
        }
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

/// Whether a host is this machine, as far as can be told without asking anybody.
pub(super) fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.to_canonical().is_loopback(),
    }
}

/// RFC 6761: these names mean this machine, whatever a server of names says. `url` has made them small.
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name is one of a private network, without asking anybody.
pub(super) fn is_private_name(host: &Host<&str>) -> bool {
    const PRIVATE: [&str; 6] = [".corp", ".home.arpa", ".internal", ".intranet", ".lan", ".local"];
    let Host::Domain(name) = host else { return false };
    let name = name.trim_end_matches('.');
    is_localhost(name) || !name.contains('.') || PRIVATE.iter().any(|end| name.ends_with(end))
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

pub(super) fn is_public(ip: IpAddr) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn private_ranges_are_private_from_the_first_to_the_last_and_no_further() {
        for (first, last, before, after) in [
            ("0.0.0.0", "0.255.255.255", "", "1.0.0.0"),
            ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
            ("169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
            ("172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
            ("192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
            ("192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"),
            ("192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
            ("198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
            ("198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"),
            ("203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"),
            ("224.0.0.0", "255.255.255.255", "223.255.255.255", ""),
            ("::", "::ff:ffff", "", "::100:0"),
            ("100::", "1fff:ffff::", "", "2000::"),
            ("2001::", "2001:1ff:ffff::", "2000:ffff::", "2001:200::"),
            ("2001:db8::", "2001:db8:ffff::", "2001:db7:ffff::", "2001:db9::"),
            ("3fff::", "3fff:fff:ffff::", "3ffe:ffff::", "3fff:1000::"),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:ffff::", ""),
            ("64:ff9b:1::", "64:ff9b:1:ffff::", "", ""),
            ("64:ff9b::10.0.0.0", "64:ff9b::10.255.255.255", "64:ff9b::9.255.255.255", "64:ff9b::11.0.0.0"),
            ("::ffff:10.0.0.0", "::ffff:10.255.255.255", "::ffff:9.255.255.255", "::ffff:11.0.0.0"),
            ("::10.0.0.0", "::10.255.255.255", "::9.255.255.255", "::11.0.0.0"),
            ("2002:a00::", "2002:aff:ffff:ffff::", "2002:9ff:ffff::", "2002:b00::"),
        ] {
            assert!(!is_public(ip(first)) && !is_public(ip(last)), "{first} to {last}");
            for outside in [before, after].iter().filter(|outside| !outside.is_empty()) {
                assert!(is_public(ip(outside)), "{outside}");
            }
        }
    }

    #[test]
    fn offline_nothing_passes_but_what_is_allowed_on_this_machine() {
        let mut guard =
            Guard::new(&[SocketAddr::from(([127, 0, 0, 1], 8000)), "10.0.0.1:80".parse().unwrap()]);
        guard.offline = true;
        let check = |text: &str| guard.check_url(&Url::parse(text).unwrap(), false).map(|_| ());
        for text in
            ["http://example.org/", "https://1.1.1.1/", "http://10.0.0.1/", "http://localhost.example.org/"]
        {
            assert_eq!(check(text), Err(Rule::Offline), "{text}");
        }
        for text in ["http://127.0.0.1:8000/", "http://localhost:8000/", "http://[::ffff:127.0.0.1]:8000/"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        // This machine, but not what was allowed of it.
        assert_eq!(check("http://127.0.0.1:8001/"), Err(Rule::Port));
        assert_eq!(guard.check_address(SocketAddr::from(([127, 0, 0, 1], 80))), Err(Rule::Private));
    }

    #[test]
    fn public_addresses_pass_on_the_ports_of_the_web() {
        let guard = Guard::new(&[]);
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "104.16.0.1",
            "185.199.108.153",
            "223.255.255.254",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450:4001:81b::200e",
            "2620:fe::fe",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            for port in [80, 443] {
                assert_eq!(guard.check_address(SocketAddr::new(ip(address), port)), Ok(()), "{address}");
            }
            for port in [0, 22, 8080] {
                let refused = guard.check_address(SocketAddr::new(ip(address), port));
                assert_eq!(refused, Err(Rule::Port), "{address}");
            }
        }
        for text in [
            "http://example.org/",
            "https://example.org:443/a?b#c",
            "http://example.org:80",
            "https://example.org:80/",
            "https://bücher.example/",
            "http://example.org./",
            "https://1.1.1.1/",
            "https://[2606:4700:4700::1111]/",
        ] {
            assert!(guard.check_url(&Url::parse(text).unwrap(), false).is_ok(), "{text}");
        }
    }
}
