use http::Method;
use okt_testkit::accounts::{count, register, sql};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{CALLBACK, CHALLENGE, TOKEN, VERIFIER, client, form_request, query};
use serde_json::json;

use crate::oauth_tokens::{
    Fields, Given, ME, Pair, Scene, ask, audited, code, code_form, fields, issuer, me, refresh_form, refused,
    registered, state, text, unchanged, with, without,
};

#[tokio::test]
async fn a_code_gives_tokens_with_the_documented_fields_that_no_cache_keeps() {
    let scene = Scene::new().await;
    let answer = scene.exchange(&scene.code().await).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-store");
    let body = answer.json();
    assert_eq!(fields(&body), ["access_token", "expires_in", "refresh_token", "scope", "token_type"]);
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(900)));
    assert_eq!(body["scope"], "read");
    assert!(text(&body, "refresh_token").starts_with("okto_"));
    let me = scene.service.get_as(&text(&body, "access_token"), ME).await;
    assert_eq!(me.json()["email"], scene.ada.email);
    assert_eq!(audited(&scene.service, "grant.token_issued").await, 1);
}

#[tokio::test]
async fn tokens_are_asked_for_with_a_posted_form_and_in_no_other_way() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let before = state(service).await;
    let form = code_form(&scene.client, &code);
    let address = format!("{TOKEN}?{}", query(&form));
    for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = Answer::of(service.request(method.clone(), &address)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (405, "method_not_allowed"),
            "{method}"
        );
    }
    let fields: serde_json::Map<_, _> =
        form.iter().map(|(name, value)| ((*name).into(), json!(value))).collect();
    let answer = Answer::of(service.request(Method::POST, TOKEN).json(&fields)).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (415, "unsupported_media_type"));
    let plain = service.request(Method::POST, TOKEN).header("content-type", "text/plain").body(query(&form));
    assert_eq!(Answer::of(plain).await.status, 415);
    refused(&Answer::of(form_request(service, &address, &[])).await, "invalid_request");
    unchanged(service, &before, "nothing was used up").await;
    assert_eq!(ask(service, &form).await.status, 200);
}

#[tokio::test]
async fn a_field_that_is_missing_empty_or_there_twice_is_refused() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let before = state(service).await;
    let form = code_form(&scene.client, &code);
    for name in ["grant_type", "client_id", "code", "code_verifier"] {
        refused(&ask(service, &without(&form, name)).await, "invalid_request");
        refused(&ask(service, &with(&form, name, "")).await, "invalid_request");
    }
    for (name, value) in &form {
        let twice = [form.clone(), vec![(*name, *value)]].concat();
        refused(&ask(service, &twice).await, "invalid_request");
    }
    unchanged(service, &before, "refused").await;
    let more = [form, vec![("nonsense", "1"), ("nonsense", "2"), ("client_secret", "")]].concat();
    assert_eq!(ask(service, &more).await.status, 200, "what is not known or empty is passed over");
}

#[tokio::test]
async fn a_code_lives_ten_minutes_and_not_a_moment_longer() {
    let scene = Scene::new().await;
    let code = okt_testkit::oauth::code(&scene.service, &scene.client, &scene.ada.email, "read").await;
    let left = "SELECT extract(epoch FROM expires_at - clock_timestamp())::int8 FROM okt_system.oauth_codes";
    let left = count(&scene.service, left).await;
    assert!((590..=600).contains(&left), "{left} s");
    sql(
        &scene.service,
        "UPDATE okt_system.oauth_codes SET expires_at = clock_timestamp() - interval '1 millisecond'",
    )
    .await;
    let before = state(&scene.service).await;
    refused(&scene.exchange(&code).await, "invalid_grant");
    unchanged(&scene.service, &before, "refused").await;
}

#[tokio::test]
async fn a_code_is_bound_to_its_client_address_challenge_and_resource() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let other = client(service).await;
    let before = state(service).await;
    let form = code_form(&scene.client, &code);
    let verifier = VERIFIER.replace('d', "e");
    let mcp = format!("{}/mcp", issuer(service));
    for (name, value, word) in [
        ("client_id", other.as_str(), "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1/callback/", "invalid_grant"),
        ("code_verifier", &verifier, "invalid_grant"),
        ("resource", &mcp, "invalid_target"),
    ] {
        refused(&ask(service, &with(&form, name, value)).await, word);
        unchanged(service, &before, name).await;
    }
    for wrong in ["nonsense", &code[..code.len() - 1], &format!("{code}a"), &code.replace("oktc_", "okto_")] {
        refused(&ask(service, &with(&form, "code", wrong)).await, "invalid_grant");
    }
    unchanged(service, &before, "refused").await;
    assert_eq!(ask(service, &form).await.status, 200);
}

#[tokio::test]
async fn a_verifier_must_be_well_formed_and_the_one_that_the_challenge_was_made_of() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let before = state(service).await;
    let form = code_form(&scene.client, &code);
    for (verifier, word) in [
        ("a".repeat(43), "invalid_grant"),
        ("a".repeat(128), "invalid_grant"),
        (CHALLENGE.to_owned(), "invalid_grant"),
        (VERIFIER.to_lowercase(), "invalid_grant"),
        (format!("{VERIFIER}A"), "invalid_grant"),
        (VERIFIER[..42].to_owned(), "invalid_request"),
        ("a".repeat(129), "invalid_request"),
        (format!("{VERIFIER}="), "invalid_request"),
        (format!("{VERIFIER} "), "invalid_request"),
        (format!("{VERIFIER}é"), "invalid_request"),
    ] {
        refused(&ask(service, &with(&form, "code_verifier", &verifier)).await, word);
        unchanged(service, &before, &verifier).await;
    }
    assert_eq!(ask(service, &form).await.status, 200);
}

#[tokio::test]
async fn no_verifier_fits_a_code_without_a_challenge_or_with_a_plain_one() {
    let scene = Scene::new().await;
    for challenge in ["", VERIFIER] {
        let code = scene.code().await;
        sql(&scene.service, &format!("UPDATE okt_system.oauth_codes SET code_challenge = '{challenge}'"))
            .await;
        refused(&scene.exchange(&code).await, "invalid_grant");
        let form = code_form(&scene.client, &code);
        refused(&ask(&scene.service, &without(&form, "code_verifier")).await, "invalid_request");
    }
    assert_eq!(
        count(&scene.service, "SELECT count(*) FROM okt_system.oauth_codes WHERE used_at IS NOT NULL").await,
        0
    );
}

#[tokio::test]
async fn a_second_valid_use_of_a_code_is_refused_and_ends_what_the_first_gave() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let bystander = scene.pair().await;
    let first = Pair::of(&scene.exchange(&code).await);
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    assert_eq!([me(service, &first.access).await, me(service, &second.access).await], [200, 200]);

    refused(&scene.exchange(&code).await, "invalid_grant");
    for token in [&first.access, &second.access] {
        assert_eq!(me(service, token).await, 401);
    }
    for token in [&first.refresh, &second.refresh] {
        refused(&scene.refresh(token).await, "invalid_grant");
    }
    assert_eq!(audited(service, "grant.code_reused").await, 1);
    refused(&scene.exchange(&code).await, "invalid_grant");
    assert_eq!(audited(service, "grant.code_reused").await, 1, "recorded once");
    assert_eq!(
        me(service, &bystander.access).await,
        200,
        "another grant of the same person and client goes on"
    );
    assert_eq!(scene.refresh(&bystander.refresh).await.status, 200);
    assert_eq!(me(service, &scene.ada.token).await, 200);
}

#[tokio::test]
async fn a_second_invalid_use_of_a_code_is_refused_and_changes_nothing() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let other = client(service).await;
    let pair = Pair::of(&scene.exchange(&code).await);
    let before = state(service).await;
    let form = code_form(&scene.client, &code);
    let (verifier, mcp) = ("a".repeat(43), format!("{}/mcp", issuer(service)));
    for (name, value) in [
        ("client_id", other.as_str()),
        ("client_id", "client_of_nobody"),
        ("client_secret", "okts_nonsense"),
        ("code_verifier", &verifier),
        ("code_verifier", "short"),
        ("redirect_uri", "https://elsewhere.example/callback"),
        ("resource", &mcp),
    ] {
        let answer = ask(service, &with(&form, name, value)).await;
        assert!(answer.status.is_client_error(), "{name}={value} {answer:?}");
        unchanged(service, &before, format!("{name}={value}")).await;
    }
    assert_eq!(me(service, &pair.access).await, 200);
    assert_eq!(scene.refresh(&pair.refresh).await.status, 200);
}

#[tokio::test]
async fn a_code_whose_grant_was_taken_back_is_refused_and_nobody_is_accused() {
    let scene = Scene::new().await;
    let code = scene.code().await;
    sql(&scene.service, "UPDATE okt_system.sessions SET revoked_at = clock_timestamp()").await;
    let before = state(&scene.service).await;
    for _ in 0..2 {
        refused(&scene.exchange(&code).await, "invalid_grant");
        unchanged(&scene.service, &before, "it was not used, so it did not come again").await;
    }
}

#[tokio::test]
async fn the_address_for_the_answer_may_be_left_out_but_must_not_be_another() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let form = code_form(&scene.client, &code);
    for wrong in [
        "http://127.0.0.1:4444/callback",
        "http://127.0.0.1/callback?a=1",
        "http://127.0.0.1/Callback",
        "http://localhost/callback",
        "https://127.0.0.1/callback",
        "http://127.0.0.1/callback%2F",
    ] {
        refused(&ask(service, &with(&form, "redirect_uri", wrong)).await, "invalid_grant");
    }
    assert_eq!(ask(service, &without(&form, "redirect_uri")).await.status, 200);
    let code = scene.code().await;
    let form = with(&code_form(&scene.client, &code), "redirect_uri", CALLBACK);
    assert_eq!(ask(service, &form).await.status, 200);
}

#[tokio::test]
async fn there_are_two_grant_types_and_a_client_has_those_that_it_registered_for() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let once = registered(service, json!({"grant_types": ["authorization_code"]})).await;
    let once = text(&once, "client_id");
    let code = code(service, &once, scene.ada.id, &Given::default()).await;
    let form = code_form(&once, &code);
    for unknown in [
        "password",
        "client_credentials",
        "implicit",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "Authorization_Code",
        "authorization_code refresh_token",
    ] {
        refused(&ask(service, &with(&form, "grant_type", unknown)).await, "unsupported_grant_type");
    }
    let answer = ask(service, &form).await;
    assert_eq!(
        fields(&answer.json()),
        ["access_token", "expires_in", "scope", "token_type"],
        "nothing to refresh"
    );
    assert_eq!(me(service, &text(&answer.json(), "access_token")).await, 200);
    let left = "SELECT extract(epoch FROM s.expires_at - clock_timestamp())::int8
                  FROM okt_system.sessions s JOIN okt_system.oauth_grants g ON g.id = s.id";
    assert!(count(service, left).await <= 900, "and the grant ends with the token");

    let pair = scene.pair().await;
    refused(&ask(service, &refresh_form(&once, &pair.refresh)).await, "unauthorized_client");
    assert_eq!(scene.refresh(&pair.refresh).await.status, 200);
}

#[tokio::test]
async fn an_access_token_is_for_the_resource_that_was_given_and_a_client_can_not_name_another() {
    let scene = Scene::new().await;
    let (service, ada) = (&scene.service, scene.ada.id);
    let whole = issuer(service);
    let (mcp, slash) = (format!("{whole}/mcp"), format!("{whole}/"));
    let right: [(Option<&str>, &[&str], &str); 5] = [
        (None, &[], &whole),
        (None, &[&whole], &whole),
        (None, &[&slash], &whole),
        (Some(&mcp), &[], &mcp),
        (Some(&mcp), &[&mcp], &mcp),
    ];
    for (given, asked, audience) in right {
        let code = code(service, &scene.client, ada, &Given { resource: given, ..Given::default() }).await;
        let answer = ask(service, &naming(&code_form(&scene.client, &code), asked)).await;
        let pair = Pair::of(&answer);
        let again = ask(service, &naming(&refresh_form(&scene.client, &pair.refresh), asked)).await;
        for token in [pair.access, Pair::of(&again).access] {
            assert_eq!(crate::oauth_tokens::access::claims(&token)["aud"], audience);
            let status = if audience == whole { 200 } else { 401 };
            assert_eq!(me(service, &token).await, status, "{audience}");
        }
    }
    let wrong: [(Option<&str>, &[&str]); 6] = [
        (None, &["https://elsewhere.example"]),
        (None, &["nonsense"]),
        (None, &[&mcp]),
        (Some(&mcp), &[&whole]),
        (None, &[&whole, &mcp]),
        (Some(&mcp), &[&mcp, &mcp]),
    ];
    for (given, asked) in wrong {
        let given = Given { resource: given, ..Given::default() };
        let code = code(service, &scene.client, ada, &given).await;
        let before = state(service).await;
        let form = code_form(&scene.client, &code);
        refused(&ask(service, &naming(&form, asked)).await, "invalid_target");
        unchanged(service, &before, format!("{asked:?}")).await;
        let pair = Pair::of(&ask(service, &form).await);
        let before = state(service).await;
        let form = refresh_form(&scene.client, &pair.refresh);
        refused(&ask(service, &naming(&form, asked)).await, "invalid_target");
        unchanged(service, &before, format!("{asked:?}")).await;
    }
}

fn naming<'a>(form: &Fields<'a>, resources: &[&'a str]) -> Fields<'a> {
    [form.clone(), resources.iter().map(|one| ("resource", *one)).collect()].concat()
}

#[tokio::test]
async fn a_code_acts_for_whoever_gave_it() {
    let scene = Scene::new().await;
    let bob = register(&scene.service, "bob").await;
    let code = code(&scene.service, &scene.client, bob.id, &Given::default()).await;
    let pair = Pair::of(&scene.exchange(&code).await);
    assert_eq!(scene.service.get_as(&pair.access, ME).await.json()["email"], bob.email);
    assert_eq!(crate::oauth_tokens::access::claims(&pair.access)["sub"], json!(bob.id));
}
