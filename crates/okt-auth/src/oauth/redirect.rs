//! Where an answer may be sent.

use url::{Host, Url};

/// Why a redirect address can't be registered; `None` when it can. Only https, and http to the machine of the person
/// itself: schemes of apps can be claimed by any app on the same machine.
pub(super) fn objection(text: &str) -> Option<&'static str> {
    if text.len() > 2000
        || !text.is_ascii()
        || text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ')
    {
        return Some("must be at most 2000 plain characters");
    }
    if text.contains(['*', '\\', '#']) {
        return Some("must not have a wildcard, a backslash or a fragment");
    }
    let Ok(url) = Url::parse(text) else { return Some("must be an absolute address") };
    if !url.username().is_empty() || url.password().is_some() {
        return Some("must not name a user");
    }
    // Readers of addresses forgive that, each in a way of its own.
    if text.split_once("://").is_none_or(|(_, rest)| rest.starts_with(['/', '?'])) {
        return Some("must name a host");
    }
    // What a person reads, what is compared and where the answer goes must be the same.
    if url.host_str().is_some_and(|host| host_text(text) != host) {
        return Some(
            "must write its host as browsers do: in lower case, an address with all its numbers in decimal",
        );
    }
    if url.port() == Some(0) {
        return Some("must not have port 0");
    }
    match (url.scheme(), url.host()) {
        // Such a name can't be looked up, but would be written into headers.
        (_, Some(Host::Domain(name))) if !name.bytes().all(is_of_a_name) => Some("must name a host"),
        ("http", Some(host)) if is_loopback_host(&host) => None,
        ("http", _) => Some("must be https; http is for 127.0.0.1, [::1] and localhost only"),
        ("https", Some(Host::Domain(host))) if is_public_suffix(host) => {
            Some("must not be a public suffix, such as github.io, under which any user can register a name")
        }
        // A page's policy can't name one, so the answer would not arrive.
        ("https", Some(Host::Ipv6(_))) => Some("must not be an IPv6 address other than [::1]"),
        ("https", Some(_)) => None,
        _ => Some("must be https, or http to 127.0.0.1, [::1] or localhost"),
    }
}

/// What stands in place of the host, to the letter.
fn host_text(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.find(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Whether an answer may be sent to `given` by a client that registered `registered`: the same characters, but on the
/// machine of the person itself any port, because a program there takes what is free (RFC 8252).
pub fn matches(registered: &str, given: &str) -> bool {
    if registered == given {
        return true;
    }
    let (Some(registered), Some(given)) = (without_port(registered), without_port(given)) else {
        return false;
    };
    registered == given
}

/// Whether it stays on the machine of the person.
pub fn is_loopback(text: &str) -> bool {
    Url::parse(text)
        .is_ok_and(|url| url.scheme() == "http" && url.host().is_some_and(|host| is_loopback_host(&host)))
}

/// What stands before and behind the port of a loopback address; characters, not what they mean.
fn without_port(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("http://")?;
    let host = ["127.0.0.1", "[::1]", "localhost"].into_iter().find(|host| {
        rest.strip_prefix(host).is_some_and(|behind| behind.is_empty() || behind.starts_with([':', '/', '?']))
    })?;
    let behind = &rest[host.len()..];
    let Some(port) = behind.strip_prefix(':') else { return Some((host, behind)) };
    let end = port.find(|c: char| !c.is_ascii_digit()).unwrap_or(port.len());
    let valid = port[..end].parse::<u16>().is_ok_and(|port| port > 0);
    let rest = &port[end..];
    (valid && (rest.is_empty() || rest.starts_with(['/', '?']))).then_some((host, rest))
}

fn is_loopback_host(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => *address == std::net::Ipv4Addr::LOCALHOST,
        Host::Ipv6(address) => *address == std::net::Ipv6Addr::LOCALHOST,
    }
}

const fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

fn is_public_suffix(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    psl::suffix(host.as_bytes())
        .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == host.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_registered() {
        for good in [
            "https://app.example.org/callback",
            "https://app.example.org:8443/callback?from=okt",
            "https://someone.github.io/callback",
            "https://192.0.2.7/callback",
            "http://127.0.0.1/callback",
            "http://127.0.0.1:33418/",
            "http://[::1]:1234/callback",
            "http://localhost:3000/callback",
        ] {
            assert_eq!(objection(good), None, "{good}");
        }
        for bad in [
            "",
            "callback",
            "/callback",
            "//app.example.org/callback",
            "https://",
            "https:///callback",
            "https://app.example.org;sandbox/callback",
            "https://app.example.org,evil.example/callback",
            "https://'self'/callback",
            "http://app.example.org/callback",
            "http://127.0.0.2/callback",
            "http://localhost.evil.example/callback",
            "http://127.0.0.1.evil.example/callback",
            "http://0.0.0.0/callback",
            "http://192.168.1.1/callback",
            "https://app.example.org/callback#here",
            "https://app.example.org/callback#",
            "https://user@app.example.org/callback",
            "https://user:word@app.example.org/callback",
            "https://*.example.org/callback",
            "https://app.example.org/*",
            "https://app.example.org\\callback",
            "https://app.example.org/ callback",
            "https://app.example.org/\ncallback",
            "https://äpp.example.org/callback",
            "https://github.io/callback",
            "https://[2001:db8::1]/callback",
            "https://co.uk/callback",
            "http://2130706433/callback",
            "http://127.1/callback",
            "http://0x7f.0.0.1/callback",
            "http://LOCALHOST/callback",
            "http://[0:0:0:0:0:0:0:1]/callback",
            "https://0x7f.1/callback",
            "https://App.example.org/callback",
            "https://%61pp.example.org/callback",
            "https://app.example.org:0/callback",
            "http://127.0.0.1:0/callback",
            "javascript:alert(1)",
            "data:text/html,hello",
            "file:///etc/passwd",
            "vbscript:hello",
            "blob:https://app.example.org/1",
            "org.example.app:/callback",
            "myapp://callback",
            "ftp://app.example.org/callback",
            "urn:ietf:wg:oauth:2.0:oob",
        ] {
            assert!(objection(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_was_registered_matches_itself_and_other_ports_of_this_machine() {
        let https = "https://app.example.org/callback";
        for (registered, given, expected) in [
            (https, "https://app.example.org/callback", true),
            (https, "https://app.example.org/callback/", false),
            (https, "https://app.example.org/Callback", false),
            (https, "https://APP.example.org/callback", false),
            (https, "https://app.example.org/callback?more=1", false),
            (https, "https://app.example.org/call%62ack", false),
            (https, "https://app.example.org%2Fcallback", false),
            (https, "https://app.example.org:443/callback", false),
            (https, "https://app.example.org:8443/callback", false),
            (https, "http://app.example.org/callback", false),
            (https, "https://app.example.org.evil.example/callback", false),
            (https, "https://evil.example/?https://app.example.org/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:33418/callback", true),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1:2/callback", true),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1/callback", true),
            ("http://localhost:1/callback", "http://localhost:2/callback", true),
            ("http://[::1]:1/callback", "http://[::1]:2/callback", true),
            ("http://127.0.0.1/callback", "http://localhost/callback", false),
            ("http://localhost/callback", "http://127.0.0.1/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:1/other", false),
            ("http://127.0.0.1/callback", "https://127.0.0.1/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:0/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:99999/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:evil.example/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback", false),
            ("http://localhost/callback", "http://localhost.evil.example/callback", false),
            ("http://127.0.0.1/callback", "http://127.0.0.1:1/callback?more=1", false),
        ] {
            assert_eq!(matches(registered, given), expected, "{registered} {given}");
        }
    }
}
