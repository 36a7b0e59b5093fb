//! Secrets, issuer, keys and the first admin.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Breaches, is_loopback};
use crate::secret::Secret;
use crate::sections::{Config, Registration};

/// An HS256 key shorter than its hash weakens the signature.
const LEAST_SECRET_BYTES: usize = 32;

/// So that nobody guesses it within the limit on registering.
const LEAST_SETUP_CODE: usize = 12;

/// Parts of secrets that were copied from an example.
const PLACEHOLDERS: [&str; 11] = [
    "changeme",
    "change-me",
    "change_me",
    "change me",
    "replace",
    "placeholder",
    "example",
    "your-secret",
    "your_secret",
    "256-bit-secret",
    "0123456789abcdef",
];

pub(super) fn rules(config: &Config, found: &mut Breaches) {
    secrets(config, found);
    issuer(config, found);
    api_keys(config, found);

    let password = &config.bootstrap.default_admin_password;
    if !password.is_empty() && !(8..=256).contains(&password.expose().chars().count()) {
        found.at("bootstrap.default_admin_password", "must have 8 to 256 characters");
    }
    let code = &config.bootstrap.setup_code;
    if !code.is_empty() && code.expose().chars().count() < LEAST_SETUP_CODE {
        found.at("bootstrap.setup_code", format!("must have at least {LEAST_SETUP_CODE} characters"));
    }
}

pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let bootstrap = &config.bootstrap;
    let missing: Vec<&str> = [
        ("default_admin_email", bootstrap.default_admin_email.is_empty()),
        ("default_admin_password", bootstrap.default_admin_password.is_empty()),
        ("default_admin_display_name", bootstrap.default_admin_display_name.is_empty()),
    ]
    .into_iter()
    .filter_map(|(key, is_empty)| is_empty.then_some(key))
    .collect();
    if bootstrap.default_admin && !missing.is_empty() {
        warnings.push(format!(
            "bootstrap.default_admin: no admin will be created, since {} is empty",
            missing.join(", ")
        ));
    }
    if config.auth.registration != Registration::Open
        && !bootstrap.auto_promote_first_user
        && !bootstrap.seeds_admin()
    {
        warnings.push(format!(
            "auth.registration: on an empty installation the first account can't be made while it is {:?}; use \
             bootstrap.default_admin",
            config.auth.registration.as_str()
        ));
    }
    if config.mode.is_production() {
        if config.oauth.issuer.is_none() {
            warnings.push("oauth.issuer: OAuth is off, since production needs its public address".into());
        }
        if bootstrap.auto_promote_first_user && !bootstrap.seeds_admin() {
            warnings.push(
                "bootstrap.auto_promote_first_user: the first user to register becomes sysadmin, from another machine \
                 with the setup code; prefer bootstrap.default_admin"
                    .into(),
            );
        } else if !bootstrap.seeds_admin() {
            warnings.push(
                "bootstrap: registering makes no user sysadmin, since production promotes the first user only where \
                 bootstrap.auto_promote_first_user is set; use bootstrap.default_admin, or `okt admin promote`"
                    .into(),
            );
        }
    }
    warnings
}

fn secrets(config: &Config, found: &mut Breaches) {
    let auth = &config.auth;
    for (key, secret) in
        [("auth.jwt_secret", &auth.jwt_secret), ("auth.jwt_secret_previous", &auth.jwt_secret_previous)]
    {
        if !secret.is_empty() && secret.expose().len() < LEAST_SECRET_BYTES {
            found.at(key, format!("must have at least {LEAST_SECRET_BYTES} bytes"));
        }
    }
    if config.mode.is_production() {
        let message = if auth.jwt_secret.is_empty() {
            "must be set in production mode, here or as AUTH_JWTSECRET, to at least 32 random bytes; \
             `openssl rand -base64 32` makes some"
        } else if looks_copied(&auth.jwt_secret) {
            "looks like a placeholder; production mode needs random bytes, such as `openssl rand -base64 32` makes"
        } else {
            return;
        };
        found.between("auth.jwt_secret", &["mode"], message);
    }
}

/// From an example, or typed by leaning on a key.
fn looks_copied(secret: &Secret) -> bool {
    let text = secret.expose().to_lowercase();
    let distinct: BTreeSet<char> = text.chars().collect();
    distinct.len() < 8 || PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder))
}

fn issuer(config: &Config, found: &mut Breaches) {
    let Some(issuer) = &config.oauth.issuer else {
        return;
    };
    if issuer.query().is_some() || issuer.fragment().is_some() {
        found.at("oauth.issuer", "must have no query and no fragment");
    }
    if config.mode.is_production()
        && issuer.scheme() != "https"
        && !issuer.host_str().is_some_and(is_loopback)
    {
        found.between(
            "oauth.issuer",
            &["mode"],
            "must be https in production mode, unless its host is loopback",
        );
    }
}

fn api_keys(config: &Config, found: &mut Breaches) {
    let keys = &config.api_keys;
    let default = Duration::from_hours(24 * u64::from(keys.default_ttl));
    if !keys.max_ttl.is_zero() && default > keys.max_ttl.duration() {
        found.between(
            "api_keys.default_ttl",
            &["api_keys.max_ttl"],
            format!("{} days is more than api_keys.max_ttl, {}", keys.default_ttl, keys.max_ttl),
        );
    }
}
