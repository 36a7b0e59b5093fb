//! A browser's TLS where plain HTTP is turned away.

use super::*;

#[tokio::test]
async fn who_turns_programs_away_is_asked_like_a_browser() {
    let site = Server::start(any_port(ALLOWED), |head| {
        if head.starts_with("GET /robots.txt ") {
            status(404, "")
        } else if head.to_ascii_lowercase().contains("mozilla/5.0") {
            page(200, "content-type: text/html\r\n", ARTICLE)
        } else {
            status(403, "")
        }
    })
    .await;
    let solver = willing_solver().await;
    let mut config = with_solver(&solver);
    config.providers.resolution.fetch.retry.retry_403_max_attempts = 0;
    let turned_away = resolver(&config, &[site.address]);
    let mut wanted = wanted(&site.url("/a"));
    wanted.providers.remove(&Provider::ChallengeSolver);
    let resolution = turned_away.resolve(&wanted, &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 403 forbidden"], "off unless it is named");

    config.providers.resolution.tls.impersonate = "firefox".into();
    let mut reader = Reader::default();
    let resolution = resolver(&config, &[site.address]).resolve(&wanted, &mut reader).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 403 forbidden", "tls /a 200 taken"]);
    assert_eq!(reader.pages, [ARTICLE]);
    assert_eq!(solver.connections().await, 0);
}

#[tokio::test]
async fn where_it_does_not_help_the_solver_is_asked() {
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let solver = willing_solver().await;
    let mut config = with_solver(&solver);
    config.providers.resolution.tls.impersonate = "chrome".into();
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(
        story(&resolution),
        ["fetch /a 403 challenge", "tls /a 403 challenge", "challenge_solver /a 200 taken"]
    );
}

#[tokio::test]
async fn it_leads_nowhere_private_either() {
    let inside = Server::start(any_port([127, 0, 0, 1]), |_| ok(ARTICLE)).await;
    let to = inside.url("/");
    let site = Server::start(any_port(ALLOWED), move |head| {
        if head.starts_with("GET /robots.txt ") {
            status(404, "")
        } else if head.to_ascii_lowercase().contains("mozilla/5.0") {
            crate::server::moved(302, &to)
        } else {
            status(401, "")
        }
    })
    .await;
    let solver = willing_solver().await;
    let mut config = with_solver(&solver);
    config.providers.resolution.tls.impersonate = "chrome".into();
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 401 forbidden", "tls /a - address_refused"]);
    assert_eq!((inside.connections().await, solver.connections().await), (0, 0));
}
