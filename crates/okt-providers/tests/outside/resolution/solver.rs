//! A browser that gets through challenges, and what is not believed of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test]
async fn a_challenge_is_recognised_and_solved() {
    for (code, lines) in [
        (403, "cf-mitigated: challenge\r\n"),
        (503, "server: cloudflare\r\ncontent-type: text/html\r\n"),
        (429, ""),
        (200, "server: cloudflare\r\n"),
    ] {
        let site = site(vec![page(code, lines, CHALLENGE)]).await;
        let solver = willing_solver().await;
        let resolver = resolver(&with_solver(&solver), &[site.address]);
        let mut reader = Reader::default();
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut reader).await.unwrap();
        let seen = format!("fetch /a {code} challenge");
        assert_eq!(story(&resolution), [seen.as_str(), "challenge_solver /a 200 taken"]);
        assert_eq!(reader.pages, [ARTICLE], "nobody took the challenge for a page");
        assert_eq!(pages(&site), 1, "the same client does not get through the second time either");
    }
}

#[tokio::test]
async fn without_a_solver_the_source_says_so() {
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", CHALLENGE)]).await;
    let resolver = resolver(&config(), &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(code(&resolution), "challenge");
}

#[tokio::test]
async fn the_order_is_in_the_protocol() {
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let expected = json!({ "cmd": "request.get", "url": site.url("/a?q=1"), "maxTimeout": 60_000 });
    let solver = solver(move |order| {
        assert_eq!(order, expected);
        solution(&order["url"], 200, ARTICLE)
    })
    .await;
    let mut config = with_solver(&solver);
    // With the path of the protocol, too.
    config.providers.resolution.challenge_solver.url = Some(solver.url("/v1").parse().unwrap());
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a?q=1")), &mut Reader::default()).await.unwrap();
    assert_eq!(resolution.end, End::Taken);
}

#[tokio::test]
async fn what_comes_from_a_private_or_odd_address_is_thrown_away() {
    let inside = Server::start(any_port([127, 0, 0, 1]), |_| ok("inside")).await;
    for from in [
        inside.url("/"),
        "http://127.0.0.1/".into(),
        "http://inside.test/".into(),
        "http://169.254.169.254/latest/".into(),
        "file:///etc/passwd".into(),
        "about:blank".into(),
        "nonsense".into(),
    ] {
        let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
        let solver = solver(move |_| solution(&json!(from), 200, ARTICLE)).await;
        let resolver = resolver(&with_solver(&solver), &[site.address]);
        let mut reader = Reader::default();
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut reader).await.unwrap();
        assert_eq!(story(&resolution), ["fetch /a 403 challenge", "challenge_solver /a - address_refused"]);
        assert_eq!(reader.pages, Vec::<String>::new());
        assert_eq!(solver.connections().await, 1);
    }
    assert_eq!(inside.connections().await, 0);
}

#[tokio::test]
async fn a_private_address_is_not_handed_over() {
    let solver = willing_solver().await;
    let mut config = with_solver(&solver);
    config.providers.resolution.fetch.enabled = false;
    // Also where nobody asks for robots.txt before, which would be refused as well.
    for robots in [true, false] {
        config.providers.resolution.robots = robots;
        for url in
            ["http://inside.test/", "http://127.0.0.1/", "http://10.0.0.1/", "http://user:pw@named.test/"]
        {
            let resolution =
                resolver(&config, &[]).resolve(&wanted(url), &mut Reader::default()).await.unwrap();
            assert_eq!(story(&resolution), ["challenge_solver / - address_refused"]);
        }
    }
    assert_eq!(solver.connections().await, 0);
}

#[tokio::test]
async fn solvers_are_used_in_turn_and_a_dead_one_is_made_up_for() {
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let (first, second) = (willing_solver().await, willing_solver().await);
    let dead = Server::start(any_port([127, 0, 0, 1]), |_| Vec::new()).await;
    let mut config = with_solver(&dead);
    config.providers.resolution.challenge_solver.endpoints =
        [&first, &second].map(|solver| solver.url("/").parse().unwrap()).into();
    let resolver = resolver(&config, &[site.address]);
    let mut stories = Vec::new();
    for _ in 0..4 {
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
        assert_eq!(resolution.end, End::Taken);
        stories.push(resolution.attempts.len());
    }
    assert_eq!(stories, [3, 2, 3, 2], "every third goes to the dead one, and then to the next");
    let asked = (dead.connections().await, first.connections().await, second.connections().await);
    assert_eq!(asked, (2, 2, 2));
}

#[tokio::test]
async fn a_solver_that_fails_is_asked_again_and_then_told() {
    let failed = |message: &str| {
        let error = json!({ "status": "error", "message": message }).to_string();
        page(500, "", &error)
    };
    let timeout = failed("Error solving the challenge. Timeout after 60.0 seconds.");
    for (answer, told, code) in
        [(timeout, "- challenge", "challenge"), (status(500, ""), "- provider_failed", "provider_failed")]
    {
        let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
        let solver = solver(move |_| answer.clone()).await;
        let resolver = resolver(&with_solver(&solver), &[site.address]);
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
        let mut expected = vec!["fetch /a 403 challenge".to_owned()];
        expected.extend(std::iter::repeat_n(format!("challenge_solver /a {told}"), 2));
        assert_eq!(story(&resolution), expected);
        assert_eq!(super::code(&resolution), code);
    }
}

#[tokio::test]
async fn the_status_that_the_browser_saw_counts() {
    for (seen, told) in
        [(403, vec!["403 forbidden"; 2]), (404, vec!["404 not_found"]), (503, vec!["503 server_error"; 2])]
    {
        let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
        let solver = solver(move |order| solution(&order["url"], seen, ARTICLE)).await;
        let resolver = resolver(&with_solver(&solver), &[site.address]);
        let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
        let told: Vec<_> = told.into_iter().map(|told| format!("challenge_solver /a {told}")).collect();
        assert_eq!(story(&resolution)[1..], told);
    }
    // A challenge that it did not notice is one, whatever it says.
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let solver = solver(|order| solution(&order["url"], 200, CHALLENGE)).await;
    let resolver = resolver(&with_solver(&solver), &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 403 challenge", "challenge_solver /a 200 challenge"]);
}

#[tokio::test]
async fn an_endless_answer_of_a_solver_is_dropped() {
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let solver = Server::serve(any_port([127, 0, 0, 1]), |_, mut socket| async move {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"status\":\"").await;
        while socket.write_all(&[b'x'; 16_384]).await.is_ok() {}
    })
    .await;
    let resolver = resolver(&with_solver(&solver), &[site.address]);
    let resolution = resolver.resolve(&wanted(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 403 challenge", "challenge_solver /a - too_large"]);
}

#[tokio::test]
async fn no_more_challenges_are_solved_at_once_than_allowed() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let solver = Server::serve(any_port([127, 0, 0, 1]), move |head, mut socket| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            let order = posted(&head, &mut socket).await;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            let _ = socket.write_all(&solution(&order["url"], 200, ARTICLE)).await;
        }
    })
    .await;
    let site = site(vec![page(403, "cf-mitigated: challenge\r\n", "")]).await;
    let mut config = with_solver(&solver);
    config.providers.resolution.challenge_solver.max_concurrency = 2;
    config.providers.resolution.per_host_concurrency = 100;
    let resolver = resolver(&config, &[site.address]);
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let (resolver, wanted) = (resolver.clone(), wanted(&site.url(&format!("/{n}"))));
            tokio::spawn(async move { resolver.resolve(&wanted, &mut Reader::default()).await.unwrap().end })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), End::Taken);
    }
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}
