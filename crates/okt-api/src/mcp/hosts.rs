//! Whether a request was meant for us: by the name that it calls us by, and by the page that sends it.
//!
//! A page of a stranger whose name was made to lead to our address would otherwise reach us from inside a network.

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, header};
use okt_config::Mode;
use okt_http::{Code, Problem};
use url::Url;

use crate::Api;

const OF_THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub(super) fn check(api: &Api, parts: &Parts) -> Result<(), Problem> {
    let config = api.app.config();
    let development = config.mode == Mode::Development;
    let issuer = config.oauth.issuer.as_ref();
    let refused = |what: &str, setting: &str| {
        let detail = format!("{what} is not one of this service; see the setting {setting}");
        Err(Problem::new(Code::Forbidden, detail))
    };

    let named = once(&parts.headers, header::HOST);
    let named = named.or_else(|| parts.uri.authority().map(ToString::to_string));
    let mut hosts: Vec<String> =
        config.mcp.allowed_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    hosts.extend(issuer.and_then(authority));
    let is_ours = |named: &str| {
        let plain = named.to_ascii_lowercase();
        hosts
            .iter()
            .any(|host| *host == plain || format!("{host}:443") == plain || format!("{host}:80") == plain)
            || (development && is_of_this_machine(&plain))
    };
    // Without any name there is nothing to compare with: OAuth is off, and nobody has said how the service is called.
    let nameless = hosts.is_empty() && !development;
    if !nameless && !named.as_deref().is_some_and(is_ours) {
        return refused("the name in Host", "mcp.allowed_hosts");
    }

    let Some(origin) = once(&parts.headers, header::ORIGIN) else {
        return if parts.headers.contains_key(header::ORIGIN) {
            refused("the Origin", "mcp.allowed_origins")
        } else {
            Ok(())
        };
    };
    let known = issuer.map(|url| url.origin().ascii_serialization());
    let mut allowed = known.iter().chain(&config.mcp.allowed_origins);
    let local = development
        && origin.strip_prefix("http://").is_some_and(|host| is_of_this_machine(&host.to_ascii_lowercase()));
    if local || allowed.any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(&origin)) {
        return Ok(());
    }
    refused("the Origin", "mcp.allowed_origins")
}

/// A header that is there once.
fn once(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok().map(str::to_owned),
        _ => None,
    }
}

/// Host and port, without the port of the scheme.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

fn is_of_this_machine(named: &str) -> bool {
    let authority: Option<Authority> = named.parse().ok();
    // What stands before an @ is no host.
    authority.is_some_and(|found| !named.contains('@') && OF_THIS_MACHINE.contains(&found.host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_told_from_their_look_alikes() {
        for name in ["localhost", "localhost:80", "127.0.0.1:8080", "[::1]:9", "[::1]"] {
            assert!(is_of_this_machine(name), "{name}");
        }
        for name in [
            "localhost.example",
            "127.0.0.1.example:80",
            "localhost@example.org",
            "",
            "example.org",
            "127.0.0.2",
        ] {
            assert!(!is_of_this_machine(name), "{name}");
        }
    }

    #[test]
    fn an_authority_has_the_port_where_that_is_not_the_schemes() {
        let of = |text: &str| authority(&text.parse().unwrap()).unwrap();
        assert_eq!(of("https://Okt.example/path"), "okt.example");
        assert_eq!(of("https://okt.example:443"), "okt.example");
        assert_eq!(of("http://okt.example:8080/"), "okt.example:8080");
    }
}
