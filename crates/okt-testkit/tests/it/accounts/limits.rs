use http::Method;
use okt_testkit::accounts::{PASSWORD, post, register};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

const LOGIN: &str = "/api/v1/auth/login";
const REGISTER: &str = "/api/v1/auth/register";
/// Outside of development, limits per address apply to loopback too.
const ISSUER: (&str, &str) = ("SVC_OAUTH_ISSUER", "https://okt.example");

/// All at once, so that no allowance grows back in between: the statuses in order, and the refusals for their number.
async fn at_once(service: &TestService, path: &str, bodies: Vec<Value>) -> (Vec<u16>, Vec<Answer>) {
    let mut requests = tokio::task::JoinSet::new();
    for body in bodies {
        requests.spawn(Answer::of(service.request(Method::POST, path).json(&body)));
    }
    let answers = requests.join_all().await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    (statuses, answers.into_iter().filter(|answer| answer.status == 429).collect())
}

fn wait(refused: &Answer) -> u64 {
    assert_eq!(refused.problem(), "rate_limited");
    refused.header("retry-after").parse().unwrap()
}

#[tokio::test]
async fn the_eleventh_login_within_a_minute_from_one_address_is_refused() {
    let service = TestService::product(&[ISSUER]).await;
    let logins =
        (0..11).map(|n| json!({"email": format!("p{n}@example.org"), "password": PASSWORD})).collect();
    let (statuses, refused) = at_once(&service, LOGIN, logins).await;
    assert_eq!(statuses, [vec![401; 10], vec![429]].concat());
    assert!((1..=6).contains(&wait(&refused[0])), "{:?}", refused[0]);
    assert_eq!(refused[0].header("ratelimit-limit"), "10", "the limit that was reached, not another one");
    assert_eq!(refused[0].header("ratelimit-remaining"), "0");
    assert_eq!(service.get("/api/v1/repositories/presets").await.status, 200, "other routes are not touched");
}

#[tokio::test]
async fn addresses_are_counted_each_for_themselves() {
    let service = TestService::product(&[ISSUER, ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    let login = async |from: &str, number: usize| {
        let body = json!({"email": format!("p{number}@example.org"), "password": PASSWORD});
        let request = service.request(Method::POST, LOGIN).header("x-forwarded-for", from).json(&body);
        Answer::of(request).await.status.as_u16()
    };
    let tries = futures_util::future::join_all((0..11).map(|number| login("192.0.2.1", number))).await;
    assert_eq!(tries.iter().filter(|status| **status == 429).count(), 1);
    assert_eq!(login("192.0.2.2", 20).await, 401);
}

#[tokio::test]
async fn the_twenty_first_login_within_an_hour_to_one_account_from_one_address_is_refused_even_on_loopback() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let spellings = ["ada@example.org", " ADA@example.org", "Ada@Example.Org "];
    let logins = spellings.iter().cycle().take(21);
    let logins = logins.map(|email| json!({"email": email, "password": "a wrong one"})).collect();
    let (statuses, refused) = at_once(&service, LOGIN, logins).await;
    assert_eq!(statuses, [vec![401; 20], vec![429]].concat());
    assert!((1..=180).contains(&wait(&refused[0])), "{:?}", refused[0]);

    let right = json!({"email": ada.email, "password": PASSWORD});
    assert_eq!(post(&service, LOGIN, &right).await.status, 429, "the right password waits too");
    let other = json!({"email": bob.email, "password": PASSWORD});
    assert_eq!(post(&service, LOGIN, &other).await.status, 200);
    assert_eq!(service.get_as(&ada.token, "/api/v1/users/me").await.status, 200, "who is in stays in");
}

/// A service behind a proxy, so that requests can come from anywhere.
async fn proxied(settings: &[(&str, &str)]) -> TestService {
    let proxy =
        [("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8"), ("SVC__RATE_LIMITS__LOGIN_PER_MINUTE", "0")];
    TestService::product(&[&proxy[..], settings].concat()).await
}

async fn login_from(service: &TestService, from: &str, email: &str, password: &str) -> u16 {
    let body = json!({"email": email, "password": password});
    let request = service.request(Method::POST, LOGIN).header("x-forwarded-for", from).json(&body);
    Answer::of(request).await.status.as_u16()
}

#[tokio::test]
async fn what_a_stranger_guesses_does_not_keep_the_owner_out() {
    let service = proxied(&[]).await;
    let ada = register(&service, "ada").await;
    let guesses = (0..21).map(|_| login_from(&service, "192.0.2.66", &ada.email, "a wrong one"));
    let guesses = futures_util::future::join_all(guesses).await;
    assert_eq!(guesses.iter().filter(|status| **status == 429).count(), 1, "{guesses:?}");
    assert_eq!(
        login_from(&service, "192.0.2.66", &ada.email, PASSWORD).await,
        429,
        "they wait, right or wrong"
    );
    for elsewhere in ["192.0.2.1", "2001:db8:0:1::7", "127.0.0.1"] {
        assert_eq!(login_from(&service, elsewhere, &ada.email, PASSWORD).await, 200, "{elsewhere}");
    }
}

/// All addresses of an IPv6 network are one subscriber's.
#[tokio::test]
async fn a_stranger_with_a_whole_network_counts_as_one() {
    let service = proxied(&[]).await;
    let guesses = (0..21).map(async |number| {
        login_from(&service, &format!("2001:db8:0:66::{number:x}"), "ada@example.org", "a wrong one").await
    });
    let guesses = futures_util::future::join_all(guesses).await;
    assert_eq!(guesses.iter().filter(|status| **status == 429).count(), 1, "{guesses:?}");
}

#[tokio::test]
async fn guesses_from_everywhere_end_and_where_the_owner_was_before_stays_open() {
    let service = proxied(&[("SVC__RATE_LIMITS__LOGIN_PER_HOUR_PER_ACCOUNT_IN_ALL", "30")]).await;
    let ada = register(&service, "ada").await;
    assert_eq!(login_from(&service, "192.0.2.1", &ada.email, PASSWORD).await, 200);
    let strangers = (0..40).map(async |number| {
        login_from(&service, &format!("198.51.100.{number}"), &ada.email, "a wrong one").await
    });
    let strangers = futures_util::future::join_all(strangers).await;
    assert_eq!(
        strangers.iter().filter(|status| **status == 429).count(),
        11,
        "one was the owner's: {strangers:?}"
    );
    assert_eq!(login_from(&service, "198.51.100.99", &ada.email, PASSWORD).await, 429, "a new address waits");
    assert_eq!(login_from(&service, "192.0.2.1", &ada.email, PASSWORD).await, 200, "a known one does not");
    let own = (0..19).map(|_| login_from(&service, "192.0.2.1", &ada.email, "a wrong one"));
    let own = futures_util::future::join_all(own).await;
    assert_eq!(
        own.iter().filter(|status| **status == 429).count(),
        1,
        "but has no more than its own allowance"
    );
}

#[tokio::test]
async fn an_unknown_account_is_limited_like_a_known_one() {
    let service = TestService::product(&[]).await;
    let logins = vec![json!({"email": "nobody@example.org", "password": PASSWORD}); 21];
    let (statuses, _) = at_once(&service, LOGIN, logins).await;
    assert_eq!(statuses, [vec![401; 20], vec![429]].concat());
}

#[tokio::test]
async fn the_sixth_registration_within_an_hour_from_one_address_is_refused() {
    let service = TestService::product(&[ISSUER]).await;
    let people = |from: usize, count| {
        (from..from + count).map(|n| json!({"email": format!("p{n}@example.org"), "password": PASSWORD}))
    };
    let (statuses, refused) = at_once(&service, REGISTER, people(0, 6).collect()).await;
    assert_eq!(statuses, [vec![201; 5], vec![429]].concat());
    assert!((1..=720).contains(&wait(&refused[0])), "{:?}", refused[0]);

    let development = TestService::product(&[]).await;
    let (statuses, _) = at_once(&development, REGISTER, people(0, 12).collect()).await;
    assert_eq!(statuses, [201; 12], "in development loopback is not limited");
}

#[tokio::test]
async fn an_account_tries_twenty_new_addresses_an_hour_and_no_more() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let own = format!("/api/v1/users/{}", ada.id);
    let mut statuses = Vec::new();
    for number in 0..21 {
        let body = json!({"email": format!("a{number}@example.org")});
        let request = service.request(Method::PUT, &own).bearer_auth(&ada.token).json(&body);
        statuses.push(Answer::of(request).await.status.as_u16());
    }
    assert_eq!(statuses, [vec![200; 20], vec![429]].concat());
}
