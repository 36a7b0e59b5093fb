//! robots.txt, and how often a host is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;
use crate::server::moved;

async fn site_with_robots(robots: Vec<u8>) -> Server {
    Server::start(any_port(ALLOWED), move |head| {
        if head.starts_with("GET /robots.txt ") { robots.clone() } else { ok(ARTICLE) }
    })
    .await
}

#[tokio::test]
async fn robots_txt_is_heeded() {
    let robots = "User-agent: *\nDisallow: /\n\nUser-agent: OKT\nDisallow: /private\nAllow: /private/open\n";
    let site = site_with_robots(ok(robots)).await;
    let solver = willing_solver().await;
    let resolver = resolver(&with_solver(&solver), &[site.address]);
    for (path, told) in [("/a", "200 taken"), ("/private/a?b", "- robots"), ("/private/open", "200 taken")] {
        let resolution = resolver.resolve(&wanted(&site.url(path)), &mut Reader::default()).await.unwrap();
        assert_eq!(story(&resolution), [format!("fetch {path} {told}")]);
        if told == "- robots" {
            assert_eq!(code(&resolution), "disallowed_by_robots");
            assert_eq!(resolution.attempts[0].failed(), None);
        }
    }
    assert_eq!(site.heads().len() - pages(&site), 1, "robots.txt is remembered");
    assert!(!site.heads().iter().any(|head| head.contains("/private/a")));
    assert_eq!(solver.connections().await, 0, "a browser is no way around it");
}

#[tokio::test]
async fn a_free_copy_may_be_had_where_robots_are_not_wanted() {
    let site = site_with_robots(ok("User-agent: *\nDisallow: /")).await;
    let elsewhere = super::site(vec![page(200, "", ARTICLE)]).await;
    let service = open_access_of(&[site.url("/copy"), elsewhere.url("/copy2")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[site.address, elsewhere.address]);
    let resolution = resolver.resolve(&with_doi(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(
        story(&resolution),
        ["fetch /a - robots", "open_access /copy - robots", "open_access /copy2 200 taken"]
    );
    assert_eq!(pages(&site), 0);
}

#[tokio::test]
async fn the_robots_txt_of_every_host_on_the_way_counts() {
    let unwilling = site_with_robots(ok("User-agent: *\nDisallow: /")).await;
    let to = unwilling.url("/there");
    let site = site(vec![moved(302, &to)]).await;
    let resolver = resolver(&config(), &[site.address, unwilling.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a - robots"]);
    assert_eq!(pages(&unwilling), 0);
}

#[tokio::test]
async fn a_robots_txt_that_is_missing_allows_and_one_that_is_ill_does_not() {
    for allows in [
        status(404, ""),
        status(403, ""),
        ok(""),
        ok("<html>no robots here</html>"),
        moved(302, "/robots.txt"),
    ] {
        let site = site_with_robots(allows).await;
        let resolver = resolver(&config(), &[site.address]);
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
        assert_eq!(story(&resolution), ["fetch /a 200 taken"]);
    }
    for ill in [500, 503, 429] {
        let site = site_with_robots(status(ill, "")).await;
        let solver = willing_solver().await;
        let resolver = resolver(&with_solver(&solver), &[site.address]);
        for _ in 0..2 {
            let resolution =
                resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
            assert_eq!(story(&resolution), ["fetch /a - robots"]);
            let End::Failed { code, retryable, retry_after, .. } = resolution.end else { panic!() };
            assert_eq!(
                (code, retryable, retry_after),
                ("disallowed_by_robots", true, Some(Duration::from_mins(5)))
            );
        }
        assert_eq!((site.connections().await, solver.connections().await), (1, 0));
    }
}

#[tokio::test]
async fn robots_txt_is_not_asked_for_when_the_operator_says_so() {
    let site = site_with_robots(ok("User-agent: *\nDisallow: /")).await;
    let mut config = config();
    config.providers.resolution.robots = false;
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 200 taken"]);
    assert_eq!(site.connections().await, 1);
}

#[tokio::test]
async fn a_robots_txt_that_leads_inside_is_not_followed() {
    let inside = Server::start(any_port([127, 0, 0, 1]), |_| ok("")).await;
    let site = site_with_robots(moved(302, &inside.url("/robots.txt"))).await;
    let resolver = resolver(&config(), &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a - address_refused"]);
    assert_eq!(inside.connections().await, 0);
}

#[tokio::test]
async fn a_crawl_delay_is_kept() {
    let site = site_with_robots(ok("User-agent: *\nCrawl-delay: 1")).await;
    let resolver = resolver(&config(), &[site.address]);
    let began = Instant::now();
    for _ in 0..2 {
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
        assert_eq!(resolution.end, End::Taken);
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_host_sees_no_more_than_four_requests_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let site = Server::serve(any_port(ALLOWED), move |_, mut socket| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            let _ = socket.write_all(&ok(ARTICLE)).await;
        }
    })
    .await;
    let resolver = resolver(&config(), &[site.address]);
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let (resolver, wanted) = (resolver.clone(), wanted(&site.url(&format!("/{n}"))));
            tokio::spawn(async move { resolver.resolve(&wanted, &mut Reader::default()).await.unwrap().end })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), End::Taken);
    }
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}
