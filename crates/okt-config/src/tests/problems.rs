//! What is refused, and in which words.

use serde_json::json;

use super::Place;
use crate::{Config, Period, check, defaults, schema, tree};

pub(super) fn refused(text: &str, expected: &str) {
    assert_eq!(Place::with(text).problems(), expected, "for {text}");
}

#[test]
fn unknown_keys_come_with_a_suggestion_at_any_depth() {
    refused("prot = 1", "prot: unknown key; did you mean `server.port`? (in /here/okt.toml:1)");
    refused(
        "jwt_secret = 1",
        "jwt_secret: unknown key; did you mean `auth.jwt_secret`? (in /here/okt.toml:1)",
    );
    refused("\n[servr]\nport = 1", "servr: unknown key; did you mean `server`? (in /here/okt.toml:2)");
    refused("[server]\n\nprot = 1", "server.prot: unknown key; did you mean `port`? (in /here/okt.toml:3)");
    refused(
        "databases.default.max_cons = 1",
        "databases.default.max_cons: unknown key; did you mean `max_conns`? (in /here/okt.toml:1)",
    );
    refused(
        "providers.resolution.fetch.retry.max_atempts = 1",
        "providers.resolution.fetch.retry.max_atempts: unknown key; did you mean `max_attempts`? \
         (in /here/okt.toml:1)",
    );
    refused(
        "task.queues.embed_fact = 1",
        "task.queues.embed_fact: unknown key; did you mean `embed_facts`? (in /here/okt.toml:1)",
    );
    refused(
        "task.timeouts.anotate_report = \"1h\"",
        "task.timeouts.anotate_report: unknown key; did you mean `annotate_report`? (in /here/okt.toml:1)",
    );
    refused("quux = 1", "quux: unknown key (in /here/okt.toml:1)");
}

#[test]
fn a_value_that_the_environment_overrides_is_checked_all_the_same() {
    let place = Place::with("[server]\nport = \"eighty\"").set("SVC__SERVER__PORT", "80");
    assert_eq!(
        place.problems(),
        "server.port: expected a whole number from 0 to 65535, got \"eighty\", although environment \
         SVC__SERVER__PORT overrides it now (in /here/okt.toml:2)"
    );
    let twice = Place::with("[server]\nport = \"eighty\"").set("SVC__SERVER__PORT", "ninety");
    assert!(
        twice.problems().contains("got \"ninety\" (in environment SVC__SERVER__PORT)"),
        "{}",
        twice.problems()
    );
    let fine = Place::with("[server]\nport = 8081").set("SVC__SERVER__PORT", "80");
    assert_eq!(fine.load().unwrap().config.server.port, 80);
}

#[test]
fn wrong_types_and_values_say_what_was_expected() {
    for (text, expected) in [
        ("server.port = \"abc\"", "server.port: expected a whole number from 0 to 65535, got \"abc\""),
        ("server.port = 65536", "server.port: expected a whole number from 0 to 65535, got 65536"),
        ("server.port = 80.5", "server.port: expected a whole number from 0 to 65535, got 80.5"),
        ("server.port = -1", "server.port: expected a whole number from 0 to 65535, got -1"),
        ("server = 1", "server: expected a table, got 1"),
        (
            "server.max_in_flight = 0",
            "server.max_in_flight: expected a whole number from 1 to 1000000, got 0",
        ),
        (
            "server.max_in_flight = 1000001",
            "server.max_in_flight: expected a whole number from 1 to 1000000, got 1000001",
        ),
        (
            "server.max_connections = 9223372036854775807",
            "server.max_connections: expected a whole number from 1 to 1000000, got 9223372036854775807",
        ),
        (
            "databases.tasks.max_conns = 10001",
            "databases.tasks.max_conns: expected a whole number from 1 to 10000, got 10001",
        ),
        (
            "server.limits.json_bytes = 0",
            "server.limits.json_bytes: expected a whole number of at least 1, got 0",
        ),
        (
            "rate_limits.api_per_minute = 5000000000",
            "rate_limits.api_per_minute: expected a whole number from 0 to 4294967295, got 5000000000",
        ),
        ("mode = \"prod\"", "mode: expected one of `development`, `production`, got \"prod\""),
        (
            "databases.default.ssl_mode = \"prefer\"",
            "databases.default.ssl_mode: expected one of `disable`, `require`, `verify-ca`, `verify-full`, \
             got \"prefer\"",
        ),
        (
            "server.read_timeout = 15",
            "server.read_timeout: expected a period such as 15s, 1m30s or 24h, longer than 0s, got 15",
        ),
        (
            "server.read_timeout = \"0s\"",
            "server.read_timeout: expected a period such as 15s, 1m30s or 24h, longer than 0s, got \"0s\"",
        ),
        (
            "auth.token_ttl = \"\"",
            "auth.token_ttl: expected a period such as 15s, 1m30s or 24h, longer than 0s, got an empty text",
        ),
        ("search.hybrid.min_score = 1.5", "search.hybrid.min_score: expected a number from 0 to 1, got 1.5"),
        (
            "search.hybrid.min_score = nan",
            "search.hybrid.min_score: expected a number from 0 to 1, got \"nan\"",
        ),
        ("search.hybrid.enabled = \"yes\"", "search.hybrid.enabled: expected true or false, got \"yes\""),
        (
            "server.trusted_proxies = [\"10.0.0.0/8\", \"here\"]",
            "server.trusted_proxies[1]: expected a network such as 10.0.0.0/8, got \"here\"",
        ),
        (
            "server.host = \"localhost\"",
            "server.host: expected an IP address such as 127.0.0.1, got \"localhost\"",
        ),
        (
            "databases.Tenant.url = \"postgres://h/d\"",
            "databases.Tenant: a name here has 1 to 63 of a-z, 0-9, _ and -",
        ),
        (
            "repository_presets.general.contexts = \"some\"",
            "repository_presets.general.contexts: expected `all` or a list, each text, got \"some\"",
        ),
        (
            "repository_presets.general.contexts = [1]",
            "repository_presets.general.contexts[0]: expected text, got 1",
        ),
        (
            "repository_presets.general.providers.search = [\"bing\"]",
            "repository_presets.general.providers.search[0]: expected one of `web`, `academic`, got \"bing\"",
        ),
        ("repository_presets.mine = {}", "repository_presets.mine.label: is required"),
        ("[[providers.registries]]\nid = \"a\"", "providers.registries[0].url: is required"),
    ] {
        refused(text, &format!("{expected} (in /here/okt.toml:1)"));
    }
}

#[test]
fn periods_have_bounds_where_their_users_have_some() {
    for key in ["read_timeout", "write_timeout", "header_timeout", "drain_timeout"] {
        refused(
            &format!("server.{key} = \"0s\""),
            &format!(
                "server.{key}: expected a period such as 15s, 1m30s or 24h, longer than 0s, got \"0s\" \
                 (in /here/okt.toml:1)"
            ),
        );
    }
    Place::with("server.drain_delay = \"0s\"").load().unwrap();

    // What PostgreSQL takes ends at 2147483647 ms, which is 24d20h31m23s647ms.
    for key in
        ["statement_timeout", "worker_statement_timeout", "lock_timeout", "idle_in_transaction_timeout"]
    {
        for period in ["24d1ms", "25d"] {
            refused(
                &format!("databases.tenant = {{ url = \"postgres://h/d\", {key} = \"{period}\" }}"),
                &format!(
                    "databases.tenant.{key}: expected a period such as 15s, 1m30s or 24h, at most 24d, \
                     got \"{period}\" (in /here/okt.toml:1)"
                ),
            );
        }
        for period in ["0s", "24d", "576h"] {
            Place::with(&format!("databases.default.{key} = \"{period}\"")).load().unwrap();
        }
    }
    for period in ["0s", "5m1ms"] {
        refused(
            &format!("databases.default.acquire_timeout = \"{period}\""),
            &format!(
                "databases.default.acquire_timeout: expected a period such as 15s, 1m30s or 24h, \
                 longer than 0s and at most 5m, got \"{period}\" (in /here/okt.toml:1)"
            ),
        );
    }
    Place::with("databases.default.acquire_timeout = \"5m\"").load().unwrap();
}

/// A bound that can't be read would bind nothing.
#[test]
fn every_bound_of_a_period_is_a_period() {
    let bounds = schema::leaves().iter().filter_map(|leaf| leaf.schema.get("x-at-most"));
    let bounds: Vec<&str> = bounds.map(|bound| bound.as_str().unwrap()).collect();
    assert_eq!(bounds.len(), 5, "{bounds:?}");
    assert!(bounds.iter().all(|bound| bound.parse::<Period>().is_ok()), "{bounds:?}");
}

#[test]
fn all_problems_are_listed_in_order_of_their_keys() {
    let place = Place::with(
        "mode = \"production\"\n[server]\nport = \"x\"\nnope = 1\n[task]\nheartbeat_interval = \"1h\"\n\
         [repository_presets.mine]\n",
    )
    .set("SVC__LOG__LEVEL", "loud")
    .set("SVC__SERVER__PORTT", "1");
    assert_eq!(
        place.problems(),
        "auth.jwt_secret: must be set in production mode, here or as AUTH_JWTSECRET, to at least 32 random bytes; `openssl rand -base64 32` makes some \
         (in /here/okt.toml:1)\n\
         log.level: expected one of `error`, `warn`, `info`, `debug`, `trace`, got \"loud\" \
         (in environment SVC__LOG__LEVEL)\n\
         repository_presets.mine.label: is required (in /here/okt.toml:7)\n\
         server.nope: unknown key (in /here/okt.toml:4)\n\
         server.port: expected a whole number from 0 to 65535, got \"x\" (in /here/okt.toml:3)\n\
         server.portt: unknown key; did you mean `SVC__SERVER__PORT`? (in environment SVC__SERVER__PORTT)\n\
         task.heartbeat_interval: must be less than task.heartbeat_timeout: 1h is not less than 10m \
         (in /here/okt.toml:6)"
    );
}

#[test]
fn syntax_errors_have_a_line_and_a_column() {
    let shown = Place::with("[server]\nport = = 1\n").problems();
    assert!(shown.starts_with("/here/okt.toml: line 2, column 8: "), "{shown}");
    let shown = Place::with("[server]\nport = 1\nport = 2\n").problems();
    assert!(shown.starts_with("/here/okt.toml: line 3, column 1: duplicate key"), "{shown}");
    let place = Place::new();
    std::fs::write(place.path("here/okt.toml"), [0xff, 0xfe]).unwrap();
    assert!(place.problems().starts_with("/here/okt.toml: can't be read: "), "{}", place.problems());
}

#[test]
fn the_environment_can_not_set_tables() {
    assert_eq!(
        Place::new().set("SVC__SERVER", "1").problems(),
        "server: a table can't be set as a whole; name one of its keys (in environment SVC__SERVER)"
    );
    assert_eq!(
        Place::new().set("SVC__PROVIDERS__AI__MODELS", "x").problems(),
        "providers.ai.models: a list of tables can be set in a file only (in environment SVC__PROVIDERS__AI__MODELS)"
    );
}

/// The types must never refuse what the check let through: their own messages name no key and may hold a secret.
#[test]
fn what_passes_the_check_fits_the_types() {
    let values = [
        json!(""),
        json!("x"),
        json!("1s"),
        json!("all"),
        json!("https://h.example/"),
        json!(0),
        json!(1),
        json!(i64::MAX),
        json!(0.5),
        json!(true),
        json!([]),
        json!([""]),
        json!(["web"]),
        json!([{}]),
        json!({ "x": 1 }),
    ];
    let (mut taken, mut refused) = (0, 0);
    for leaf in schema::leaves().iter().filter(|leaf| !leaf.path.contains('[')) {
        let name = match leaf.path.split('.').next() {
            Some("databases") => "default",
            Some("repository_presets") => "general",
            _ => "embed_facts",
        };
        let path = tree::Path::dotted(&leaf.path.replace("<name>", name));
        for value in &values {
            let mut whole = defaults::tree().clone();
            tree::set(&mut whole, &path, Some(value.clone()));
            if check::check(&whole).is_empty() {
                taken += 1;
                let fits = serde_json::from_value::<Config>(whole);
                assert!(fits.is_ok(), "{path} = {value}: {fits:?}");
            } else {
                refused += 1;
            }
        }
    }
    assert!(taken > 300 && refused > 1000, "{taken} taken, {refused} refused");
}
