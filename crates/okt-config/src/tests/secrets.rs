//! Secrets stay secret, whatever goes wrong.

use super::Place;
use crate::env::{self, Kind};
use crate::schema;

const SECRET: &str = "s3cr3t-pa55word-that-nobody-may-ever-read-in-a-log";

/// The path of every secret, with names filled in.
fn secret_paths() -> Vec<String> {
    schema::leaves()
        .iter()
        .filter(|leaf| Kind::of(leaf.schema) == Some(Kind::Secret))
        .map(|leaf| leaf.path.replace("<name>", "tasks"))
        .collect()
}

#[test]
fn a_loaded_configuration_never_shows_a_secret() {
    let mut place = Place::with(&format!(
        "[[providers.registries]]\nid = \"a\"\nurl = \"https://a.example\"\napi_key = \"{SECRET}\"\nread_api_key = \"{SECRET}\"\n"
    ));
    let mut count = 0;
    for path in secret_paths() {
        let Some(name) = env::general_name(&path) else {
            continue;
        };
        let value = match &*path {
            "databases.tasks.url" => format!("postgres://u:{SECRET}@h/d"),
            // As long as such keys are.
            "providers.registry.signing_key" => format!("oks_{}", &SECRET[..43]),
            _ => SECRET.into(),
        };
        place = place.set(&name, &value);
        count += 1;
    }
    assert!(count >= 12, "{count}");
    let loaded = place.load().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.config.auth.jwt_secret.expose(), SECRET);
    let json = serde_json::to_string(&loaded.config).unwrap();
    for text in [format!("{loaded:?}"), json, format!("{:?}", loaded.entries())] {
        assert!(!text.contains(&SECRET[..43]));
        assert!(text.contains("***"));
    }
}

#[test]
fn no_error_repeats_a_secret() {
    let mut texts = vec![
        format!("databases = \"postgres://u:{SECRET}@h/d\""),
        format!("databases.default = \"postgres://u:{SECRET}@h/d\""),
        format!("databases.default.url = \"mysql://u:{SECRET}@h/d\""),
        format!("databases.default.url = \"postgres://u:{SECRET}@/\""),
        format!("databases.default.url = \"{SECRET}\""),
        format!("databases.default.password = \"{SECRET}\""),
        format!("auth = \"{SECRET}\""),
        format!("auth.jwt_secrte = \"{SECRET}\""),
        format!("auth.jwt_secret = [\"{SECRET}\"]"),
        format!("auth.jwt_secret = {{ value = \"{SECRET}\" }}"),
        format!("auth.jwt_secret = {SECRET}"),
        format!("auth.jwt_secret = \"{SECRET}"),
        format!("auth.jwt_secret = '''{SECRET}"),
        format!("auth.jwt_secret = \"\\q{SECRET}\""),
        format!("auth.jwt_secret = \"{SECRET}\" x"),
        format!("auth.jwt_secret = \"{SECRET}\"\nauth.jwt_secret = \"{SECRET}\""),
        format!("{SECRET} {SECRET}"),
        format!("mode = \"production\"\nauth.jwt_secret = \"changeme{SECRET}\""),
        format!("bootstrap.default_admin_password = \"{}\"", SECRET.repeat(9)),
        format!("oauth.issuer = \"https://u:{SECRET}@okt.example\""),
        format!("providers.ai.local.base_url = \"http://u:{SECRET}@h/v1\""),
        format!("providers.ai.gateway = \"{SECRET}\""),
        format!("providers.registries = \"{SECRET}\""),
        format!("providers.registries = [\"{SECRET}\"]"),
        format!("[[providers.registries]]\nid = \"a\"\nurl = \"{SECRET}\"\napi_key = [\"{SECRET}\"]"),
        format!("providers.resolution.challenge_solver.endpoints = \"http://u:{SECRET}@h\""),
        format!("providers.resolution.challenge_solver.endpoints = [\"http://u:{SECRET}@h\"]"),
    ];
    for path in secret_paths() {
        let path = path.replace("[]", ".x");
        texts.push(format!("{path} = [\"{SECRET}\"]"));
        texts.push(format!("{path}.x = \"{SECRET}\""));
        texts.push(format!("{path}x = \"{SECRET}\""));
    }
    for text in texts {
        let error = Place::with(&text).load().expect_err(&text);
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains("s3cr3t"), "{text} gave {shown}");
        }
    }
}

#[test]
fn a_wrong_number_for_a_secret_is_not_repeated_either() {
    let place = Place::with("auth.jwt_secret = 31415926");
    assert_eq!(place.problems(), "auth.jwt_secret: expected text, got a number (in /here/okt.toml:1)");
}
