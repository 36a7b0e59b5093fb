//! What a text must look like, beyond being text. The names stand in the schema as `format`; one table here
//! says how each is checked, how it is asked for, and whether a wrong value may be repeated in a message. The
//! names are our own, since an empty text often means "none", which the formats of JSON schema do not allow.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use schemars::{Schema, SchemaGenerator, json_schema};
use url::Url;

use crate::period::Period;

/// One kind of text.
pub(crate) struct Format {
    pub name: &'static str,
    pub expected: &'static str,
    /// The same in few words, for tables.
    pub short: &'static str,
    /// `false` where the value may hold a password.
    pub may_be_repeated: bool,
    pub fits: fn(&str) -> bool,
}

const FORMATS: &[Format] = &[
    Format { name: "password", expected: "text", short: "secret", may_be_repeated: false, fits: |_| true },
    Format {
        name: "period",
        expected: "a period such as 15s, 1m30s or 24h",
        short: "period",
        may_be_repeated: true,
        fits: |text| text.parse::<Period>().is_ok(),
    },
    Format {
        name: "ip-address",
        expected: "an IP address such as 127.0.0.1",
        short: "IP address",
        may_be_repeated: true,
        fits: |text| text.parse::<IpAddr>().is_ok(),
    },
    Format {
        name: "socket-address",
        expected: "an address with a port such as 127.0.0.1:9090",
        short: "address:port",
        may_be_repeated: true,
        fits: |text| text.parse::<SocketAddr>().is_ok(),
    },
    Format {
        name: "ip-network",
        expected: "a network such as 10.0.0.0/8",
        short: "network",
        may_be_repeated: true,
        fits: |text| text.parse::<IpNet>().is_ok(),
    },
    Format {
        name: "http-url",
        expected: "an http or https address without user name or password",
        short: "http(s) address",
        may_be_repeated: false,
        fits: is_http_url,
    },
    Format {
        name: "e-mail",
        expected: "an e-mail address",
        short: "e-mail address",
        may_be_repeated: true,
        fits: |text| {
            text.split_once('@').is_some_and(|(local, domain)| {
                !local.is_empty()
                    && !domain.is_empty()
                    && !domain.contains('@')
                    && !text.chars().any(|c| c.is_whitespace() || c.is_control())
            })
        },
    },
    Format {
        name: "name",
        expected: "1 to 63 of a-z, 0-9, _ and -",
        short: "name",
        may_be_repeated: true,
        fits: |text| {
            (1..=63).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        },
    },
];

/// The format of that name; `None` for the names that other tools put there, such as `uint16`.
pub(crate) fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Text that may also be empty, which means that the thing is not there.
pub(crate) mod optional {
    use std::borrow::Cow;
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_str(""),
        }
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| de::Error::custom("not in the expected form"))
    }
}

/// As [`optional`], for paths, which can't be displayed without loss.
pub(crate) mod optional_path {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub fn serialize<S: Serializer>(value: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        value.clone().unwrap_or_default().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        let path = PathBuf::deserialize(deserializer)?;
        Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
    }
}

pub(crate) fn ip_address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "ip-address", "minLength": 1 })
}

pub(crate) fn socket_address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "socket-address" })
}

pub(crate) fn socket_addresses(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "socket-address", "minLength": 1 } })
}

pub(crate) fn ip_networks(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "ip-network", "minLength": 1 } })
}

pub(crate) fn http_url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "http-url" })
}

pub(crate) fn required_http_url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "http-url", "minLength": 1 })
}

pub(crate) fn http_urls(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "http-url", "minLength": 1 } })
}

pub(crate) fn email(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "e-mail" })
}

pub(crate) fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "name", "minLength": 1 })
}

/// A table whose keys are names that people choose.
pub(crate) fn by_name<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": { "format": "name", "pattern": "^[a-z0-9_-]{1,63}$" },
        "additionalProperties": generator.subschema_for::<T>(),
    })
}

fn is_http_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_tells_right_from_wrong() {
        for (name, right, wrong) in [
            ("period", "1m30s", "soon"),
            ("ip-address", "::1", "localhost"),
            ("socket-address", "[::1]:80", "127.0.0.1"),
            ("ip-network", "10.0.0.0/8", "10.0.0.1"),
            ("http-url", "https://example.org/v1", "ftp://example.org"),
            ("http-url", "http://127.0.0.1:9", "https://user:pw@example.org"),
            ("e-mail", "a@b", "a@b@c"),
            ("e-mail", "a@b.example", "@b"),
            ("name", "tenant_1-x", "Tenant"),
            ("name", "a", ""),
        ] {
            let format = find(name).unwrap();
            assert!((format.fits)(right), "{name} should take {right}");
            assert!(!(format.fits)(wrong), "{name} should refuse {wrong}");
        }
    }
}
