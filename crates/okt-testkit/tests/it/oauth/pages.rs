use http::Method;
use okt_testkit::accounts::{PASSWORD, api_key, count, give, post, register, repository, send, sql};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, PageForm, REGISTER, SIGN_IN, client, exchange, parameter, request, tokens,
};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::oauth::{
    GRANTS, PUBLIC, SIGNED_IN, allow_fields, changed, fields, given, sent_to, sign_in_fields, signed_in,
    stays,
};

#[tokio::test]
async fn a_person_lets_a_client_in_and_it_acts_for_them() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let client = client(&service).await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client, "read")).await;
    assert_eq!(page.status, 200, "{page:?}");
    let before = browser.cookie.clone();
    let page = browser.sign_in(&service, &page, &ada.email).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_ne!(browser.cookie, before, "signing in starts anew");
    assert!(page.text.contains("See everything that you can see"), "{}", page.text);
    let answer = browser.decide(&service, &page, "allow").await;
    assert_eq!(parameter(&answer, "state").as_deref(), Some("a state & more"));
    assert_eq!(parameter(&answer, "iss").as_ref(), Some(&service.url));
    let tokens = exchange(&service, &client, &parameter(&answer, "code").unwrap()).await.json();
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(service.get_as(access, "/api/v1/users/me").await.json()["email"], ada.email);
}

#[tokio::test]
async fn every_page_lets_nothing_in_and_tells_nobody_anything() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let uris = [
        "https://app.example.org:8443/callback",
        "https://app.example.org",
        "http://127.0.0.1/callback",
        "http://[::1]/callback",
    ];
    let document = json!({"redirect_uris": uris, "token_endpoint_auth_method": "none"});
    let id = post(&service, REGISTER, &document).await.json()["client_id"].as_str().unwrap().to_owned();
    let mut browser = Browser::default();
    let ask = |uri: &str| changed(&request(&id, "read"), "redirect_uri", Some(uri));
    let sign_in = browser.ask(&service, &ask(uris[0])).await;
    let mut stranger = browser.clone();
    let wrong = [("flow", "a"), ("token", "b")];
    let mut pages = vec![
        (browser.open(&service, AUTHORIZE).await, 400, None),
        (stranger.send(&service, AUTHORIZE, &wrong).await, 403, None),
        (stranger.send(&service, SIGN_IN, &wrong).await, 403, None),
    ];
    let form = PageForm::of(&sign_in);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("email", &ada.email), ("password", "a wrong one")];
    pages.push((browser.send(&service, SIGN_IN, &fields).await, 401, None));
    let decide = browser.sign_in(&service, &sign_in, &ada.email).await;
    pages.extend([(sign_in, 200, None), (decide, 200, Some("https://app.example.org:8443"))]);
    for (uri, origin) in [
        (uris[1], "https://app.example.org"),
        ("http://127.0.0.1:5000/callback", "http://127.0.0.1:5000"),
        // Policies know no such addresses; the port is what is left.
        ("http://[::1]:5000/callback", "http://*:5000"),
        (uris[2], "http://127.0.0.1"),
    ] {
        pages.push((browser.ask(&service, &ask(uri)).await, 200, Some(origin)));
    }
    for (page, status, answer_to) in pages {
        stays(&page, status);
        for (name, expected) in [
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
            ("content-type", "text/html; charset=utf-8"),
        ] {
            assert_eq!(page.header(name), expected, "{name}");
        }
        let policy: Vec<_> = page.header("content-security-policy").split("; ").collect();
        let answer_to = answer_to
            .map_or_else(|| "form-action 'self'".to_owned(), |to| format!("form-action 'self' {to}"));
        for directive in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", &answer_to] {
            assert!(policy.contains(&directive), "{directive} in {policy:?}");
        }
        let style = policy.iter().find(|directive| directive.starts_with("style-src")).unwrap();
        assert!(style.starts_with("style-src 'sha256-") && style.matches(' ').count() == 1, "{style}");
        assert_eq!(policy.len(), 5, "{policy:?}");
        for word in ["<script", "<img", "<iframe", "<link", "src=", " on", "style="] {
            let found = page
                .text
                .match_indices(word)
                .any(|(at, _)| word != " on" || is_handler(&page.text[at + 3..]));
            assert!(!found, "{word} in {}", page.text);
        }
    }
}

/// Whether what follows ` on` is an attribute for a script, and not a word.
fn is_handler(rest: &str) -> bool {
    let name = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    name > 0 && rest[name..].starts_with('=')
}

#[tokio::test]
async fn the_style_of_the_pages_is_the_one_that_the_policy_names() {
    use base64::Engine as _;
    let service = TestService::product(&[]).await;
    let page = service.get(AUTHORIZE).await;
    let (_, rest) = page.text.split_once("<style>").unwrap();
    let (style, rest) = rest.split_once("</style>").unwrap();
    assert!(!rest.contains("<style"), "one of them");
    let digest = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-binary"])
        .stdin({
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, style.as_bytes()).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            file
        })
        .output()
        .unwrap();
    let digest = base64::prelude::BASE64_STANDARD.encode(digest.stdout);
    let policy = page.header("content-security-policy");
    assert!(policy.contains(&format!("style-src 'sha256-{digest}'")), "{policy}");
}

#[tokio::test]
async fn the_cookie_is_the_browsers_own_and_only_https_makes_it_secure() {
    let service = TestService::product(&[]).await;
    let mut answer = Browser::default().ask(&service, &request(&client(&service).await, "read")).await;
    let flags = |answer: &Answer| -> Vec<String> {
        let lines: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert_eq!(lines.len(), 1, "{answer:?}");
        answer.header("set-cookie").split("; ").map(str::to_owned).collect()
    };
    let plain = flags(&answer);
    assert!(plain[0].starts_with("okt_as=okt"), "{plain:?}");
    assert_eq!(plain[1..], ["Path=/", "Max-Age=600", "HttpOnly", "SameSite=Lax"]);

    let public = TestService::product(&[PUBLIC]).await;
    let ada = register(&public, "ada").await;
    let mut browser = Browser::default();
    answer = browser.ask(&public, &request(&client(&public).await, "read")).await;
    let secure = flags(&answer);
    assert!(secure[0].starts_with("__Host-okt_as=okt"), "{secure:?}");
    assert_eq!(secure[1..], ["Path=/", "Max-Age=600", "HttpOnly", "SameSite=Lax", "Secure"]);

    // A cookie of the other name, which other hosts could have planted, is not looked at.
    let form = PageForm::of(&answer);
    let planted = Browser { cookie: browser.cookie.as_ref().map(|cookie| cookie.replace("__Host-", "")) };
    stays(&planted.clone().send(&public, SIGN_IN, &sign_in_fields(&form, &ada.email)).await, 403);
    let signed_in = browser.send(&public, SIGN_IN, &sign_in_fields(&form, &ada.email)).await;
    assert_eq!(sent_to(&signed_in).origin().ascii_serialization(), PUBLIC.1);
    let again = flags(&signed_in);
    assert!(again[0].starts_with("__Host-okt_as=okt") && again[0] != secure[0], "{again:?}");
    assert_eq!(again[1..], secure[1..]);
}

#[tokio::test]
async fn forms_and_links_lead_to_where_the_service_is_known() {
    for (issuer, base) in [("https://okt.example", ""), ("https://okt.example/research", "/research")] {
        let service = TestService::product(&[("SVC_OAUTH_ISSUER", issuer)]).await;
        let ada = register(&service, "ada").await;
        let mut browser = Browser::default();
        let leads_to = |page: &Answer, attribute: &str| -> Vec<String> {
            let start = format!(" {attribute}=\"");
            let values = page
                .text
                .split(&start)
                .skip(1)
                .map(|part| part.split('"').next().unwrap().replace("&#x2f;", "/"));
            values.map(|value| value.split('?').next().unwrap().to_owned()).collect()
        };
        let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
        assert_eq!(leads_to(&page, "action"), [format!("{base}{SIGN_IN}")]);
        let form = PageForm::of(&page);
        let next = sent_to(&browser.send(&service, SIGN_IN, &sign_in_fields(&form, &ada.email)).await);
        let next = next.as_str().strip_prefix(issuer).unwrap().to_owned();
        let page = browser.open(&service, &next).await;
        assert_eq!(leads_to(&page, "action"), [format!("{base}{AUTHORIZE}")]);
        assert_eq!(leads_to(&page, "href"), [format!("{base}{AUTHORIZE}")]);
    }
}

#[tokio::test]
async fn a_hostile_name_is_text_on_every_page() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    sql(&service, "UPDATE okt_system.users SET name = '<i>\"Ada\"</i>'").await;
    let mut browser = Browser::default();
    for (name, shown) in [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;"),
        ("\"><img src=x onerror=alert(1)>", "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("' onfocus='alert(1)", "&#x27; onfocus=&#x27;alert(1)"),
        ("</title></style><svg/onload=1>", "&lt;svg"),
        ("{{ 7 * 7 }}{% raw %}", "{{ 7 * 7 }}{% raw %}"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
    ] {
        let document =
            json!({"redirect_uris": [CALLBACK], "client_name": name, "token_endpoint_auth_method": "none"});
        let id = post(&service, REGISTER, &document).await.json()["client_id"].as_str().unwrap().to_owned();
        let mut page = browser.ask(&service, &request(&id, "read")).await;
        if page.text.contains("type=\"password\"") {
            assert!(page.text.contains(shown), "{shown} in {}", page.text);
            assert!(!page.text.contains(name) || name == shown, "{}", page.text);
            page = browser.sign_in(&service, &page, &ada.email).await;
        }
        assert!(page.text.contains(shown), "{shown} in {}", page.text);
        assert!(!page.text.contains(name) || name == shown, "{}", page.text);
        assert!(!page.text.contains("<i>"), "{}", page.text);
        for tag in ["<script", "<img", "<svg"] {
            assert!(!page.text.contains(tag), "{}", page.text);
        }
    }
    // What is typed into the page comes back as text, or not at all.
    let mut other = Browser::default();
    let page = other.ask(&service, &request(&client(&service).await, "read")).await;
    let again =
        other.send(&service, SIGN_IN, &sign_in_fields(&PageForm::of(&page), "\"><script>@example.org")).await;
    stays(&again, 401);
    assert!(!again.text.contains("<script"), "{}", again.text);
}

#[tokio::test]
async fn an_account_that_does_not_exist_looks_like_a_wrong_password() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = Browser::default();
    let form = PageForm::of(&browser.ask(&service, &request(&client(&service).await, "read")).await);
    let mut pages = Vec::new();
    for (email, password) in [
        (&*ada.email, "a wrong one"),
        ("eve@example.org", PASSWORD),
        ("nobody@example.org", "a wrong one"),
        ("no address", PASSWORD),
    ] {
        let fields =
            [("flow", &*form.flow), ("token", &form.token), ("email", email), ("password", password)];
        let page = browser.send(&service, SIGN_IN, &fields).await;
        stays(&page, 401);
        assert_eq!(page.header("set-cookie"), "");
        assert!(!page.text.contains(password), "{}", page.text);
        // What they typed may stand there again.
        pages.push(page.text.replace(email, "somebody"));
    }
    assert!(pages.iter().all(|page| *page == pages[0]), "{pages:?}");
    assert_eq!(count(&service, SIGNED_IN).await, 0);
    sent_to(&browser.send(&service, SIGN_IN, &sign_in_fields(&form, &ada.email)).await);
}

#[tokio::test]
async fn who_is_not_the_one_signed_in_can_sign_in_instead() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let id = client(&service).await;
    let mut browser = signed_in(&service, &ada.email).await;
    let page = browser.ask(&service, &request(&id, "read")).await;
    let adas = PageForm::of(&page);
    let other = browser.open(&service, &format!("{AUTHORIZE}?flow={}&as=another", adas.flow)).await;
    assert!(other.text.contains("type=\"password\""), "{}", other.text);
    let page = browser.sign_in(&service, &other, &bob.email).await;
    assert!(page.text.contains(&bob.email) && !page.text.contains(&ada.email), "{}", page.text);
    stays(&browser.clone().send(&service, AUTHORIZE, &allow_fields(&adas)).await, 403);
    browser.decide(&service, &page, "allow").await;
    let owner = format!(
        "SELECT count(*) FROM okt_system.sessions s JOIN okt_system.oauth_grants g USING (id) WHERE s.user_id = '{}'",
        bob.id
    );
    assert_eq!((count(&service, &owner).await, given(&service).await), (1, (1, 1)));
}

#[tokio::test]
async fn the_choice_of_some_repositories_ends_in_the_grant() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut repositories = Vec::new();
    for _ in 0..3 {
        let one = repository(&service).await.to_string();
        give(&service, ada.id, &one, "viewer").await;
        repositories.push(one);
    }
    let id = client(&service).await;
    let mut browser = signed_in(&service, &ada.email).await;
    let page = browser.ask(&service, &request(&id, "read")).await;
    for repository in &repositories {
        assert!(page.text.contains(&format!("value=\"{repository}\"")), "{}", page.text);
    }
    let form = PageForm::of(&page);
    let fields = [
        ("flow", &*form.flow),
        ("token", &form.token),
        ("decision", "allow"),
        ("repositories", "some"),
        ("repository", &repositories[0]),
        ("repository", &repositories[2]),
    ];
    let answer = sent_to(&browser.send(&service, AUTHORIZE, &fields).await);
    let code = parameter(&answer, "code").unwrap();
    let tokens = exchange(&service, &id, &code).await.json();
    let grants = service.get_as(&ada.token, GRANTS).await.json();
    assert_eq!(grants["data"][0]["repository_ids"], json!([repositories[0], repositories[2]]));

    let access = tokens["access_token"].as_str().unwrap();
    let held = service.get_as(access, "/api/v1/permissions").await.json();
    let mut domains: Vec<_> =
        held["domains"].as_array().unwrap().iter().map(|row| row["domain"].as_str().unwrap()).collect();
    domains.retain(|domain| *domain != "system");
    domains.sort_unstable();
    let mut chosen = [repositories[0].as_str(), repositories[2].as_str()];
    chosen.sort_unstable();
    assert_eq!(domains, chosen, "{held}");

    // All of them, also those with the boxes ticked: the one question that counts is which of the two.
    let page = browser.ask(&service, &request(&id, "read")).await;
    let form = PageForm::of(&page);
    let fields = [&allow_fields(&form)[..], &[("repository", &repositories[0])]].concat();
    sent_to(&browser.send(&service, AUTHORIZE, &fields).await);
    let grants = service.get_as(&ada.token, GRANTS).await.json();
    assert_eq!(grants["data"][1]["repository_ids"], Value::Null);
}

#[tokio::test]
async fn people_see_what_they_gave_and_take_it_back() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let id = client(&service).await;
    assert_eq!(service.get_as(&ada.token, GRANTS).await.json()["data"], json!([]), "her own session is none");
    let first = tokens(&service, &id, &ada.email, "fact:read mcp").await;
    let second = tokens(&service, &id, &ada.email, "read").await;
    let bobs = tokens(&service, &id, &bob.email, "read").await;
    let list = service.get_as(&ada.token, GRANTS).await;
    assert_eq!(list.status, 200, "{list:?}");
    let list = list.json();
    let grants = list["data"].as_array().unwrap();
    assert_eq!(grants.len(), 2);
    assert_eq!(
        fields(&grants[0]),
        [
            "allows",
            "client_id",
            "client_name",
            "created_at",
            "expires_at",
            "id",
            "last_used_at",
            "repository_ids",
            "resource",
            "scope",
        ]
    );
    assert_eq!((&grants[0]["client_id"], &grants[0]["client_name"]), (&json!(id), &json!("Ada's Agent")));
    assert_eq!((&grants[0]["scope"], &grants[1]["scope"]), (&json!("mcp fact:read"), &json!("read")));
    assert!(grants[0]["allows"].as_array().unwrap().contains(&json!("See facts")), "{grants:?}");
    assert_eq!((&grants[0]["resource"], &grants[0]["repository_ids"]), (&json!(service.url), &Value::Null));

    let page = service.get_as(&ada.token, &format!("{GRANTS}?limit=1")).await.json();
    assert_eq!(page["data"][0]["id"], grants[0]["id"]);
    let next = page["next_cursor"].as_str().unwrap();
    let page = service.get_as(&ada.token, &format!("{GRANTS}?limit=1&cursor={next}")).await.json();
    assert_eq!(page["data"][0]["id"], grants[1]["id"]);

    let one = format!("{GRANTS}/{}", grants[0]["id"].as_str().unwrap());
    let works = async |tokens: &Value| {
        service.get_as(tokens["access_token"].as_str().unwrap(), "/api/v1/users/me").await.status.as_u16()
    };
    let delete = async |token: &str| send(&service, token, Method::DELETE, &one, &json!({})).await;
    assert_eq!(delete(&bob.token).await.status, 404, "not his to take");
    let (_, key) = api_key(&service, &ada, &["user:read"]).await;
    assert_eq!(delete(&key).await.status, 403);
    assert_eq!(delete(first["access_token"].as_str().unwrap()).await.status, 401, "a client can't");
    assert_eq!(service.get_as(first["access_token"].as_str().unwrap(), GRANTS).await.status, 401);
    assert_eq!(works(&first).await, 200);

    let taken = delete(&ada.token).await;
    assert_eq!((taken.status.as_u16(), taken.text.as_str()), (204, ""));
    assert_eq!((works(&first).await, works(&second).await, works(&bobs).await), (401, 200, 200));
    let refresh = first["refresh_token"].as_str().unwrap();
    let answer = okt_testkit::oauth::refresh(&service, &id, refresh).await;
    assert_eq!((answer.status.as_u16(), okt_testkit::oauth::error(&answer).as_str()), (400, "invalid_grant"));
    assert_eq!(delete(&ada.token).await.status, 404, "it is over");
    let left = service.get_as(&ada.token, GRANTS).await.json();
    assert_eq!(left["data"].as_array().unwrap().len(), 1);
    let recorded = "SELECT count(*) FROM okt_system.audit WHERE action = 'grant.revoked'";
    assert_eq!(count(&service, recorded).await, 1);
}
