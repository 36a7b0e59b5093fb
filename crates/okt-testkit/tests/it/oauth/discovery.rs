use std::collections::BTreeMap;

use http::Method;
use okt_config::LoadOptions;
use okt_testkit::accounts::{post, register, send};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{AUTHORIZE, REGISTER, REVOKE, TOKEN, client, form_request, request, tokens};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::oauth::{PUBLIC, fields, signed_in};

const SERVER: &str = "/.well-known/oauth-authorization-server";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const ME: &str = "/api/v1/users/me";

#[tokio::test]
async fn the_issuer_is_what_was_configured_to_the_letter() {
    for (configured, issuer) in [
        ("https://okt.example", "https://okt.example"),
        ("https://okt.example/", "https://okt.example"),
        ("https://okt.example:8443", "https://okt.example:8443"),
        ("https://okt.example/research", "https://okt.example/research"),
    ] {
        let service = TestService::product(&[("SVC_OAUTH_ISSUER", configured)]).await;
        let answer = service.get(SERVER).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
        let document = answer.json();
        assert_eq!(document["issuer"], issuer, "{configured}");
        assert_eq!(document["token_endpoint"], format!("{issuer}{TOKEN}"));
        assert_eq!(service.get(RESOURCE).await.json()["authorization_servers"], json!([issuer]));
    }
    let development = TestService::product(&[]).await;
    let document = development.get(SERVER).await.json();
    assert_eq!(document["issuer"], development.url, "loopback, in development");
}

#[tokio::test]
async fn an_issuer_with_a_path_has_it_behind_the_well_known_part() {
    let service = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example/research")]).await;
    let at_path = service.get(&format!("{SERVER}/research")).await;
    assert_eq!(at_path.status, 200, "{at_path:?}");
    assert_eq!(at_path.json()["issuer"], "https://okt.example/research");
    for other in ["other", "research%2F", "Research"] {
        let answer = service.get(&format!("{SERVER}/{other}")).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (404, "not_found"), "{other}");
    }
    for (path, resource) in [
        ("", "https://okt.example/research"),
        ("/research", "https://okt.example/research"),
        ("/research/mcp", "https://okt.example/research/mcp"),
    ] {
        let answer = service.get(&format!("{RESOURCE}{path}")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["resource"]), (200, &json!(resource)), "{path}");
    }
    let challenge = service.get(ME).await.header("www-authenticate").to_owned();
    assert!(
        challenge.ends_with(
            r#"resource_metadata="https://okt.example/.well-known/oauth-protected-resource/research""#
        ),
        "{challenge}"
    );
    let without = TestService::product(&[PUBLIC]).await;
    assert_eq!(without.get(&format!("{SERVER}/research")).await.status, 404);
}

#[test]
fn an_issuer_with_a_query_or_a_fragment_does_not_start() {
    for issuer in ["https://okt.example/?a=b", "https://okt.example/#a", "ftp://okt.example", "okt.example"] {
        let folder = tempfile::tempdir().unwrap();
        let options = LoadOptions {
            config: Some(folder.path().to_owned()),
            binary_dir: folder.path().to_owned(),
            working_dir: folder.path().to_owned(),
        };
        let load = |issuer: &str| {
            let settings = [
                ("SVC_OAUTH_ISSUER", issuer),
                ("SVC__DATABASES__DEFAULT__URL", "postgres://okt@127.0.0.1/okt"),
            ];
            let settings: BTreeMap<_, _> = settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
            okt_config::load(&options, &settings)
        };
        assert!(load("https://okt.example").is_ok());
        let refused = load(issuer).err().unwrap_or_else(|| panic!("{issuer} was taken"));
        assert!(refused.to_string().contains("oauth.issuer"), "{refused}");
    }
}

#[tokio::test]
async fn the_document_names_what_clients_need_before_they_ask() {
    let service = TestService::product(&[]).await;
    let document = service.get(SERVER).await.json();
    let at = |path: &str| format!("{}{path}", service.url);
    let methods = json!(["none", "client_secret_basic", "client_secret_post"]);
    for (field, expected) in [
        ("authorization_endpoint", json!(at(AUTHORIZE))),
        ("token_endpoint", json!(at(TOKEN))),
        ("registration_endpoint", json!(at(REGISTER))),
        ("revocation_endpoint", json!(at(REVOKE))),
        ("response_types_supported", json!(["code"])),
        ("response_modes_supported", json!(["query"])),
        ("grant_types_supported", json!(["authorization_code", "refresh_token"])),
        ("code_challenge_methods_supported", json!(["S256"])),
        ("token_endpoint_auth_methods_supported", methods.clone()),
        ("revocation_endpoint_auth_methods_supported", methods),
        ("authorization_response_iss_parameter_supported", json!(true)),
        ("client_id_metadata_document_supported", json!(true)),
    ] {
        assert_eq!(document[field], expected, "{field}");
    }
    let scopes: Vec<_> =
        document["scopes_supported"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    // Some clients ask for whatever is listed, so only what everybody needs is.
    assert_eq!(scopes, ["mcp", "read"]);

    // It promises nothing that is not there: every address answers, and every scope can be asked for.
    let ada = register(&service, "ada").await;
    let all = scopes.join(" ");
    let page =
        signed_in(&service, &ada.email).await.ask(&service, &request(&client(&service).await, &all)).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.text.matches("<li>").count(), scopes.len());
    for field in ["authorization_endpoint", "registration_endpoint", "token_endpoint", "revocation_endpoint"]
    {
        let path = document[field].as_str().unwrap().strip_prefix(&service.url).unwrap().to_owned();
        let answer = if field == "authorization_endpoint" {
            service.get(&path).await
        } else if field == "registration_endpoint" {
            post(&service, &path, &json!({})).await
        } else {
            Answer::of(form_request(&service, &path, &[])).await
        };
        assert_eq!(answer.status, 400, "{field}: {answer:?}");
    }
    let documentation = document["service_documentation"].as_str().unwrap();
    assert_eq!(service.get(documentation.strip_prefix(&service.url).unwrap()).await.status, 200);
}

#[tokio::test]
async fn the_service_and_its_mcp_endpoint_are_described_as_resources() {
    for (settings, issuer) in [(vec![], None), (vec![PUBLIC], Some(PUBLIC.1))] {
        let service = TestService::product(&settings).await;
        let issuer = issuer.unwrap_or(&service.url);
        for (path, resource) in [("", issuer.to_owned()), ("/mcp", format!("{issuer}/mcp"))] {
            let answer = service.get(&format!("{RESOURCE}{path}")).await;
            assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
            let document = answer.json();
            assert_eq!(document["resource"], resource);
            assert_eq!(document["authorization_servers"], json!([issuer]));
            assert_eq!(document["bearer_methods_supported"], json!(["header"]));
            assert_eq!(document["scopes_supported"], json!(["mcp", "read"]));
        }
        for nothing in ["/other", "/mcp/more", "/MCP", "/api", "/api/v1"] {
            assert_eq!(service.get(&format!("{RESOURCE}{nothing}")).await.status, 404, "{nothing}");
        }
    }
}

#[tokio::test]
async fn addresses_are_never_taken_from_what_a_stranger_writes() {
    let public = TestService::product(&[PUBLIC]).await;
    let development = TestService::product(&[]).await;
    let document = json!({"redirect_uris": ["https://app.example.org/callback"]});
    for service in [&public, &development] {
        let spoofed = |method: Method, path: &str| {
            let port = service.url.rsplit(':').next().unwrap();
            service
                .request(method, path)
                .header("host", format!("evil.example:{port}"))
                .header("x-forwarded-host", "evil.example")
                .header("x-forwarded-proto", "https")
                .header("forwarded", "host=evil.example;proto=https")
        };
        let mut answers = Vec::new();
        for path in [SERVER, RESOURCE, "/.well-known/oauth-protected-resource/mcp", ME] {
            answers.push(Answer::of(spoofed(Method::GET, path)).await);
        }
        answers.push(Answer::of(spoofed(Method::POST, REGISTER).json(&document)).await);
        for answer in answers {
            assert!([200, 201, 401].contains(&answer.status.as_u16()), "{answer:?}");
            assert!(!format!("{answer:?}").contains("evil.example"), "{answer:?}");
        }
        let issuer = Answer::of(spoofed(Method::GET, SERVER)).await.json()["issuer"].clone();
        assert_eq!(issuer, service.get(SERVER).await.json()["issuer"]);
    }
    // In development a machine has three names for itself, and any port but its own is a stranger's.
    let (_, port) = development.url.rsplit_once(':').unwrap();
    for (host, expected) in [
        (format!("localhost:{port}"), format!("http://localhost:{port}")),
        (format!("[::1]:{port}"), format!("http://[::1]:{port}")),
        ("localhost:1".to_owned(), format!("http://127.0.0.1:{port}")),
        (format!("localhost.evil.example:{port}"), format!("http://127.0.0.1:{port}")),
        (format!("evil.example@127.0.0.1:{port}"), format!("http://127.0.0.1:{port}")),
    ] {
        let answer = Answer::of(development.request(Method::GET, SERVER).header("host", &host)).await;
        if answer.status == 200 {
            assert_eq!(answer.json()["issuer"], expected, "{host}");
        } else {
            assert_eq!(answer.status, 400, "{host}");
        }
    }
}

#[tokio::test]
async fn production_without_an_issuer_has_no_oauth() {
    let settings = [("SVC__MODE", "production"), ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu")];
    let service = TestService::product(&settings).await;
    for path in [SERVER, RESOURCE, "/.well-known/oauth-protected-resource/mcp", AUTHORIZE] {
        let answer = service.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "not_configured"), "{path}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("oauth.issuer"));
    }
    let document = json!({"redirect_uris": ["https://app.example.org/callback"]});
    assert_eq!(post(&service, REGISTER, &document).await.problem(), "not_configured");
    for path in [TOKEN, REVOKE, AUTHORIZE, "/api/v1/oauth/authorize/login"] {
        let answer = Answer::of(form_request(&service, path, &[])).await;
        assert_eq!(answer.problem(), "not_configured", "{path}");
    }
    assert_eq!(service.get(ME).await.header("www-authenticate"), "Bearer", "there is nowhere to go");
    let ada = register(&service, "ada").await;
    assert_eq!(service.get_as(&ada.token, ME).await.status, 200, "people are not touched");
}

#[tokio::test]
async fn a_401_says_where_to_get_a_token_and_names_no_error_when_none_was_sent() {
    let service = TestService::product(&[PUBLIC]).await;
    let metadata = r#"resource_metadata="https://okt.example/.well-known/oauth-protected-resource""#;
    for (path, scope) in
        [(ME, "read"), ("/api/v1/admin/users", "user:read"), ("/api/v1/admin/audit", "audit:read")]
    {
        let answer = service.get(path).await;
        assert_eq!(answer.status, 401);
        let expected = format!(r#"Bearer scope="{scope}", {metadata}"#);
        assert_eq!(answer.header("www-authenticate"), expected, "{path}");

        let answer = service.get_as("no-token-of-ours", path).await;
        assert_eq!(answer.status, 401);
        let expected = format!(r#"Bearer error="invalid_token", scope="{scope}", {metadata}"#);
        assert_eq!(answer.header("www-authenticate"), expected, "{path}");
    }
}

#[tokio::test]
async fn a_403_says_which_scope_would_do() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "ada").await;
    let tokens = tokens(&service, &client(&service).await, &admin.email, "fact:read").await;
    assert_eq!(fields(&tokens), ["access_token", "expires_in", "refresh_token", "scope", "token_type"]);
    let access = tokens["access_token"].as_str().unwrap();
    let metadata = format!("{}{RESOURCE}", service.url);
    for (method, path, scope) in [
        (Method::GET, "/api/v1/admin/users", "user:read"),
        (Method::GET, "/api/v1/admin/audit", "audit:read"),
        (Method::PUT, "/api/v1/admin/users/roles", "role:manage"),
    ] {
        let answer = send(&service, access, method, path, &json!({})).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (403, "forbidden"), "{path}");
        assert_eq!(
            answer.header("www-authenticate"),
            format!(r#"Bearer error="insufficient_scope", scope="{scope}", resource_metadata="{metadata}""#)
        );
    }
    let person = register(&service, "bob").await;
    let answer = service.get_as(&person.token, "/api/v1/admin/users").await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, ""), "no scope would do");
}
