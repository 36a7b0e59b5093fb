use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use okt_testkit::client::Answer;
use okt_testkit::oauth::{TOKEN, client, form_request};
use okt_testkit::served::TestService;

use crate::oauth_tokens::{
    Given, Pair, Scene, ask, code, code_form, confidential, refresh_form, refused, state, unchanged, with,
    without,
};

/// As a client that proves itself with a header.
async fn ask_as(service: &TestService, name: &str, secret: &str, form: &[(&str, &str)]) -> Answer {
    Answer::of(form_request(service, TOKEN, form).header("authorization", basic(name, secret))).await
}

fn basic(name: &str, secret: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{secret}")))
}

/// Every character as `%..`, which nobody has to do and anybody may.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02X}"))
}

#[tokio::test]
async fn a_code_of_another_client_is_refused_however_well_that_one_proves_itself() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let public = client(service).await;
    let (post, post_secret) = confidential(service, "client_secret_post").await;
    let (header, header_secret) = confidential(service, "client_secret_basic").await;
    let before = state(service).await;
    refused(&ask(service, &code_form(&public, &code)).await, "invalid_grant");
    let form = with(&code_form(&post, &code), "client_secret", &post_secret);
    refused(&ask(service, &form).await, "invalid_grant");
    let form = without(&code_form("", &code), "client_id");
    refused(&ask_as(service, &header, &header_secret, &form).await, "invalid_grant");
    unchanged(service, &before, "refused").await;
    assert_eq!(scene.exchange(&code).await.status, 200);
}

#[tokio::test]
async fn an_unknown_client_hears_401_and_of_basic_if_it_came_with_that() {
    let scene = Scene::new().await;
    let (service, code) = (&scene.service, scene.code().await);
    let long = "x".repeat(3000);
    for id in ["client_of_nobody", "", "\0", &long, &scene.ada.id.to_string()] {
        let form = code_form(id, &code);
        // Edges refuse some of these before anybody looks for a client.
        if !["", "\0"].contains(&id) {
            let answer = ask(service, &form).await;
            refused(&answer, "invalid_client");
            assert_eq!(answer.header("www-authenticate"), "");
        }
        let answer = ask_as(service, id, "okts_x", &without(&form, "client_id")).await;
        refused(&answer, "invalid_client");
        assert!(answer.header("www-authenticate").starts_with("Basic realm="), "{answer:?}");
    }
    let form = without(&code_form("", &code), "client_id");
    for wrong in ["Basic", "Basic ", "Basic !!!", "Basic YQ==", "Bearer YTpi", "Digest a=b", "Basic /w=="] {
        let answer = Answer::of(form_request(service, TOKEN, &form).header("authorization", wrong)).await;
        refused(&answer, "invalid_client");
        assert!(answer.header("www-authenticate").starts_with("Basic "), "{wrong} {answer:?}");
    }
}

/// Four kinds of proof for three kinds of clients, with the right and with a wrong secret.
#[tokio::test]
async fn a_client_proves_itself_in_the_way_that_it_registered_for_and_in_no_other() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (post, post_secret) = confidential(service, "client_secret_post").await;
    let (header, header_secret) = confidential(service, "client_secret_basic").await;
    for (kind, id, secret) in [
        ("none", &scene.client, "okts_x"),
        ("post", &post, &post_secret),
        ("header", &header, &header_secret),
    ] {
        for proof in ["none", "post", "header", "header without a body's id"] {
            for (right, secret) in [
                (false, if kind == "post" { &header_secret } else { &post_secret }),
                (true, &secret.to_owned()),
            ] {
                let code = code(service, id, scene.ada.id, &Given::default()).await;
                let form = code_form(id, &code);
                let answer = match proof {
                    "none" => ask(service, &form).await,
                    "post" => ask(service, &with(&form, "client_secret", secret)).await,
                    "header" => ask_as(service, id, secret, &form).await,
                    _ => ask_as(service, id, secret, &without(&form, "client_id")).await,
                };
                if proof.starts_with(kind) && (right || kind == "none") {
                    Pair::of(&answer);
                } else {
                    refused(&answer, "invalid_client");
                    let challenge = answer.header("www-authenticate");
                    assert_eq!(
                        challenge.starts_with("Basic "),
                        proof.starts_with("header"),
                        "{kind} {proof}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_client_with_a_secret_proves_itself_each_time_it_refreshes() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (id, secret) = confidential(service, "client_secret_basic").await;
    let code = code(service, &id, scene.ada.id, &Given::default()).await;
    let form = without(&code_form("", &code), "client_id");
    let pair = Pair::of(&ask_as(service, &id, &secret, &form).await);
    let before = state(service).await;
    refused(&ask(service, &refresh_form(&id, &pair.refresh)).await, "invalid_client");
    let form = without(&refresh_form("", &pair.refresh), "client_id");
    refused(&ask_as(service, &id, &secret.to_lowercase(), &form).await, "invalid_client");
    refused(&ask_as(service, &id, "", &form).await, "invalid_client");
    unchanged(service, &before, "refused").await;
    Pair::of(&ask_as(service, &id, &secret, &form).await);
}

#[tokio::test]
async fn both_halves_of_basic_are_encoded_like_a_form() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (id, secret) = confidential(service, "client_secret_basic").await;
    for (name, password, right) in [
        (escaped(&id), escaped(&secret), true),
        (id.replace('_', "%5f"), secret.replace('_', "%5F"), true),
        (id.clone(), escaped(&secret), true),
        // What these stand for is another text.
        (format!("{id}+"), secret.clone(), false),
        (id.clone(), format!("{secret}%20"), false),
        (id.clone(), format!("{secret}%2B"), false),
        (id.clone(), format!("{secret}%3A"), false),
        (id.clone(), format!("{secret}:"), false),
        (id.clone(), format!("{secret}&"), false),
        (id.clone(), format!("{secret}&a=b"), false),
        (format!("{id}&a"), secret.clone(), false),
        (id.clone(), format!("%{secret}"), false),
        (id.clone(), escaped(&escaped(&secret)), false),
    ] {
        let code = code(service, &id, scene.ada.id, &Given::default()).await;
        let form = without(&code_form("", &code), "client_id");
        let answer = ask_as(service, &name, &password, &form).await;
        if right {
            Pair::of(&answer);
        } else {
            refused(&answer, "invalid_client");
        }
    }
    let code = code(service, &id, scene.ada.id, &Given::default()).await;
    let form = without(&code_form("", &code), "client_id");
    let header = basic(&id, &secret).replace("Basic", "bAsIc");
    Pair::of(&Answer::of(form_request(service, TOKEN, &form).header("authorization", header)).await);
}

#[tokio::test]
async fn two_ways_of_proving_at_once_are_refused_even_if_both_are_right() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (id, secret) = confidential(service, "client_secret_basic").await;
    let code = code(service, &id, scene.ada.id, &Given::default()).await;
    let before = state(service).await;
    let form = code_form(&id, &code);
    refused(&ask_as(service, &id, &secret, &with(&form, "client_secret", &secret)).await, "invalid_request");
    refused(
        &ask_as(service, &id, &secret, &with(&form, "client_id", &scene.client)).await,
        "invalid_request",
    );
    let header = basic(&id, &secret);
    for other in [&header, "Bearer okt_x"] {
        let request = form_request(service, TOKEN, &form).header("authorization", &header);
        refused(&Answer::of(request.header("authorization", other)).await, "invalid_request");
    }
    unchanged(service, &before, "refused").await;
    Pair::of(&ask_as(service, &id, &secret, &form).await);
}
