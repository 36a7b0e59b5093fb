//! Addresses that are nobody else's business: a registry is neither asked about them nor given what was made of them.

use url::Url;

use super::Registry;

/// What lets somebody in is called so in the query of an address.
const CREDENTIALS: [&str; 21] = [
    "access_key",
    "accesskey",
    "access_token",
    "api_key",
    "api-key",
    "apikey",
    "auth",
    "auth_token",
    "authorization",
    "jwt",
    "key",
    "passwd",
    "password",
    "pwd",
    "secret",
    "session",
    "session_id",
    "sid",
    "sig",
    "signature",
    "token",
];
/// As signed addresses of stores of files have them.
const SIGNED: [&str; 2] = ["x-amz-", "x-goog-"];

impl Registry {
    /// Why it is not told of a source of this address.
    pub async fn is_not_told_of(&self, address: &str) -> Option<&'static str> {
        let Ok(url) = Url::parse(address) else { return Some("its address can't be read") };
        if holds_credential(&url) {
            return Some("its address holds a credential");
        }
        let client = &self.0.client;
        // One that is on a private address itself is of the same network.
        if client.is_private(&url).await && !client.is_private(&self.0.service.url([])).await {
            return Some("its address is of a private network");
        }
        None
    }
}

fn holds_credential(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| {
        let name = name.to_ascii_lowercase();
        CREDENTIALS.contains(&&*name) || SIGNED.iter().any(|start| name.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use okt_config::Config;

    use super::super::Registries;
    use crate::guarded::GuardedClient;

    /// Knows one name of a private network, and one of everybody's.
    fn registries(url: &str) -> Registries {
        let look_up = |host: String| async move {
            match &*host {
                "wiki.example.org" => Ok(vec![IpAddr::from([10, 0, 0, 5])]),
                "example.org" | "registry.example.org" => Ok(vec![IpAddr::from([93, 184, 215, 14])]),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        };
        let client = GuardedClient::with_look_up(&["10.0.0.5:80".parse().unwrap()], look_up).unwrap();
        let mut config = Config::default();
        config.providers.registry.url = Some(url.parse().unwrap());
        Registries::new(&config, &client)
    }

    #[tokio::test]
    async fn a_registry_is_told_of_no_address_that_holds_a_credential_or_is_of_another_network() {
        for (address, public, private) in [
            ("https://example.org/gulls?page=2", true, true),
            ("https://gone.example.net/gulls", true, true),
            ("https://example.org/gulls?Token=abc", false, false),
            ("https://example.org/gulls?page=2&X-Amz-Signature=abc", false, false),
            ("http://wiki.example.org/plans", false, true),
            ("http://10.0.0.5/plans", false, true),
            ("http://localhost/plans", false, true),
            ("http://wiki/plans", false, true),
            ("http://wiki.internal/plans", false, true),
            ("http://[fd00::5]/plans", false, true),
        ] {
            for (url, told) in [("https://registry.example.org/", public), ("http://10.0.0.9:8700/", private)]
            {
                let all = registries(url);
                let why = all.get(None).unwrap().is_not_told_of(address).await;
                assert_eq!(why.is_none(), told, "{address} and {url}: {why:?}");
            }
        }
    }
}
