//! Query parameters that no route declares.

use http::Method;
use okt_http::{Guard, Line};
use okt_testkit::accounts::{Person, api_key, register, send, session};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::json;

async fn with_repository() -> (TestService, Person, String) {
    let service = TestService::product(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let owner = register(&service, "owner").await;
    let made =
        send(&service, &owner.token, Method::POST, "/api/v1/repositories", &json!({"name": "Bees"})).await;
    let repository = made.json()["id"].as_str().unwrap().to_owned();
    (service, owner, repository)
}

fn path(line: &Line, repository: &str) -> String {
    let nothing = "01a1e018-8541-71d7-8946-53b9e4e60cee";
    let parts = line.path.split('/').map(|part| match part {
        "{repoID}" => repository,
        part if part.starts_with('{') => nothing,
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The first user is the sysadmin, whom every guard lets through.
#[tokio::test]
async fn every_route_refuses_a_parameter_that_it_does_not_know() {
    let (service, owner, repository) = with_repository().await;
    let mut lenient = Vec::new();
    for line in okt_api::table(&service.api).lines() {
        if line.any_query {
            lenient.push(line.path.clone());
            continue;
        }
        let token = match line.guard {
            Guard::Mcp => api_key(&service, &owner, &["fact:read"]).await.1,
            _ => session(&service, owner.id).await,
        };
        let path = path(line, &repository);
        let ask = async |query: &str| {
            let request = service.request(line.method.clone().unwrap(), &format!("{path}?{query}"));
            Answer::of(request.bearer_auth(&token)).await
        };
        let refused = ask("no_route_has_this=1").await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{line:?}: {refused:?}");
        let error = &refused.json()["errors"][0];
        assert_eq!(error["field"], "no_route_has_this", "{line:?}");
        assert!(error["message"].as_str().unwrap().starts_with("unknown parameter"), "{line:?}: {error}");
    }
    lenient.retain(|path| !path.starts_with("/.well-known/") && !path.starts_with("/api/v1/oauth/"));
    // `/` is the web UI, whose pages read their own addresses.
    assert_eq!(
        lenient,
        ["/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/docs", "/invite", "/"],
        "whoever ignores what it does not know has a reason"
    );
    // Among the routes is the one that would have ended it.
    let there = service.get_as(&owner.token, &format!("/api/v1/repositories/{repository}")).await;
    assert_eq!(there.status, 200);
}

#[tokio::test]
async fn a_mistyped_dry_run_deletes_nothing() {
    let (service, owner, repository) = with_repository().await;
    let base = format!("/api/v1/repositories/{repository}");
    let ask = async |method: Method, path: &str| send(&service, &owner.token, method, path, &json!({})).await;
    let new = json!({"doi": "10.1000/182"});
    let added = send(&service, &owner.token, Method::POST, &format!("{base}/sources"), &new).await;
    let source = format!("{base}/sources/{}", added.json()["source_id"].as_str().unwrap());
    for object in [&source, &base] {
        for (query, field, message) in [
            ("dryrun=true", "dryrun", "unknown parameter; did you mean dry_run?"),
            ("dry-run=true", "dry-run", "unknown parameter; did you mean dry_run?"),
            ("dry_run=yes", "dry_run", "must be true or false"),
            ("dry_run=true&dry_run=false", "dry_run", "is given more than once"),
        ] {
            let refused = ask(Method::DELETE, &format!("{object}?{query}")).await;
            assert_eq!(refused.status, 422, "{object} {query}: {refused:?}");
            assert_eq!(refused.json()["errors"], json!([{"field": field, "message": message}]));
            assert_eq!(ask(Method::GET, object).await.status, 200, "{query}");
        }
    }
    let refused = ask(Method::GET, &format!("{base}/facts?sourceid=1")).await;
    assert_eq!(refused.json()["errors"][0]["message"], "unknown parameter; did you mean source_id?");
    assert_eq!(
        ask(Method::GET, &format!("{base}/facts?source_id=1")).await.json()["errors"][0]["message"],
        "must be a UUID"
    );
    assert_eq!(ask(Method::GET, &format!("{base}/facts?page=2")).await.status, 422);
    // Another way to write a name is the same name.
    assert_eq!(ask(Method::GET, &format!("{base}/facts?lim%69t=0")).await.status, 422);
    assert_eq!(ask(Method::GET, &format!("{base}/facts?lim%69t=1")).await.status, 200);
}
