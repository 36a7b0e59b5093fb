//! Free copies elsewhere.

use super::*;
use crate::server::{ALSO_ALLOWED, moved};

#[tokio::test]
async fn a_work_is_looked_up_by_its_doi_and_the_best_copy_is_taken() {
    let copies = site(vec![page(200, "content-type: application/pdf\r\n", ARTICLE)]).await;
    let service = open_access_of(&[copies.url("/best.pdf"), copies.url("/other")]).await;
    let paywall = site(vec![status(402, "")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[copies.address, paywall.address]);
    let mut reader = Reader::default();
    let resolution = resolver.resolve(&with_doi(&paywall.url("/a")), &mut reader).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 402 forbidden", "open_access /best.pdf 200 taken"]);
    let head = &service.heads()[0];
    assert!(head.starts_with("GET /v2/10.1000/bees?email=okt%40example.org HTTP/1.1\r\n"), "{head}");
    assert_eq!(reader.last.unwrap().1, copies.url("/best.pdf"));
}

#[tokio::test]
async fn the_doi_is_read_from_the_address_when_nobody_names_it() {
    let copies = site(vec![page(200, "", ARTICLE)]).await;
    let service = open_access_of(&[copies.url("/copy")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[copies.address]);
    let resolution =
        resolver.resolve(&wanted("https://doi.org/10.1000/BEES"), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /10.1000/BEES - unresolvable", "open_access /copy 200 taken"]);
    assert!(service.heads()[0].starts_with("GET /v2/10.1000/bees?"));
}

#[tokio::test]
async fn without_a_doi_or_an_email_nobody_is_asked() {
    let site = site(vec![status(402, "")]).await;
    let service = open_access_of(&[]).await;
    let mut config = with_open_access(config(), &service);
    let resolution = resolver(&config, &[site.address])
        .resolve(&wanted(&site.url("/a")), &mut Reader::default())
        .await
        .unwrap();
    assert_eq!(story(&resolution), ["fetch /a 402 forbidden"]);
    config.providers.resolution.open_access.email.clear();
    let resolver = resolver(&config, &[site.address]);
    let resolution = resolver.resolve(&with_doi(&site.url("/a")), &mut Reader::default()).await.unwrap();
    assert_eq!(story(&resolution), ["fetch /a 402 forbidden"]);
    assert_eq!(service.connections().await, 0);
}

#[tokio::test]
async fn copies_are_tried_in_their_order_and_those_that_were_busy_once_more() {
    // Each answers 503 first; the second has nothing, the third is fine the second time.
    let busy = |then: Vec<u8>| site(vec![status(503, ""), then]);
    let (first, third) = (busy(status(503, "")).await, busy(page(200, "", ARTICLE)).await);
    let second = site(vec![status(404, "")]).await;
    let service = open_access_of(&[first.url("/1"), second.url("/2"), third.url("/3")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[first.address, second.address, third.address]);
    let mut wanted = with_doi("http://nowhere.test/a");
    wanted.providers = [Provider::OpenAccess].into();
    let resolution = resolver.resolve(&wanted, &mut Reader::default()).await.unwrap();
    assert_eq!(
        story(&resolution),
        [
            "open_access /1 503 server_error",
            "open_access /2 404 not_found",
            "open_access /3 503 server_error",
            "open_access /1 503 server_error",
            "open_access /3 200 taken"
        ]
    );
}

#[tokio::test]
async fn a_copy_at_a_private_address_is_passed_over() {
    let inside = Server::start(any_port([127, 0, 0, 1]), |_| ok(ARTICLE)).await;
    let to = inside.url("/");
    let leads_inside = Server::start(any_port(ALSO_ALLOWED), move |_| moved(302, &to)).await;
    let good = site(vec![page(200, "", ARTICLE)]).await;
    let service = open_access_of(&[inside.url("/1"), leads_inside.url("/2"), good.url("/3")]).await;
    let config = with_open_access(config(), &service);
    let resolver = resolver(&config, &[good.address, leads_inside.address]);
    let mut wanted = with_doi("http://nowhere.test/a");
    wanted.providers = [Provider::OpenAccess].into();
    let resolution = resolver.resolve(&wanted, &mut Reader::default()).await.unwrap();
    assert_eq!(
        story(&resolution),
        ["open_access /1 - address_refused", "open_access /2 - address_refused", "open_access /3 200 taken"]
    );
    assert_eq!(inside.connections().await, 0);
}

#[tokio::test]
async fn what_the_service_says_is_told_apart() {
    for (answer, asked, told, code, retryable) in [
        (status(404, ""), 1, "404 no_copy", "no_copy", false),
        (ok(r#"{"best_oa_location": null, "oa_locations": []}"#), 1, "200 no_copy", "no_copy", false),
        (status(422, ""), 1, "422 provider_failed", "provider_failed", false),
        (status(503, ""), 2, "503 provider_failed", "provider_failed", true),
        (ok("no JSON"), 2, "- provider_failed", "provider_failed", true),
        (Vec::new(), 2, "- provider_failed", "provider_failed", true),
    ] {
        let service = Server::start(any_port([127, 0, 0, 1]), move |_| answer.clone()).await;
        let config = with_open_access(config(), &service);
        let mut wanted = with_doi("http://nowhere.test/a");
        wanted.providers = [Provider::OpenAccess].into();
        let resolution = resolver(&config, &[]).resolve(&wanted, &mut Reader::default()).await.unwrap();
        assert_eq!(story(&resolution), [format!("open_access /10.1000/bees {told}")]);
        assert!(
            matches!(&resolution.end, End::Failed { code: c, retryable: r, .. } if (*c, *r) == (code, retryable))
        );
        assert_eq!(service.connections().await, asked);
        // Where the service is, is nobody's business.
        assert!(!format!("{resolution:?}").contains("127.0.0.1"), "{resolution:?}");
    }
}
