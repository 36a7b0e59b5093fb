//! What a request costs PostgreSQL in planning: a statement that people wait for is planned once for a connection, not once
//! for a request.

use std::time::Duration;

use okt_testkit::client::{Answer, client};
use okt_testkit::cluster::Cluster;
use okt_testkit::db::run;
use okt_testkit::multipart;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::OKT;

const REQUESTS: i64 = 100;
const TEXT: &str = "The honey bee is an insect of the genus Apis. A worker bee lives for about six weeks in summer. \
                    The queen of a hive lays up to two thousand eggs on one day. Honey contains about seventeen percent water. \
                    The waggle dance tells other bees the direction of food. Beeswax melts at about sixty-four degrees Celsius.";

#[tokio::test]
async fn the_statements_of_hot_routes_are_planned_once() {
    let cluster = Cluster::start_with(&[
        "shared_preload_libraries=pg_stat_statements",
        "pg_stat_statements.track_planning=on",
        "pg_stat_statements.track_utility=off",
    ]);
    let settings = [
        ("SVC__DATABASES__DEFAULT__URL", &*cluster.url()),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", ""),
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
    ];
    let process = Process::serve(&*OKT, &settings);
    process.await_ready().await;
    let mut conn = PgConnection::connect(&cluster.url()).await.unwrap();
    run(&mut conn, "CREATE EXTENSION pg_stat_statements").await;

    let url = |path: &str| format!("{}/api/v1{path}", process.url);
    let account = json!({"email": "ada@example.org", "password": "correct horse"});
    let registered = Answer::of(client().post(url("/auth/register")).json(&account)).await.json();
    let token = registered["token"].as_str().unwrap().to_owned();
    let made = client().post(url("/repositories")).bearer_auth(&token).json(&json!({"name": "Bees"}));
    let repository = format!("/repositories/{}", Answer::of(made).await.json()["id"].as_str().unwrap());
    let upload = client().post(url(&format!("{repository}/sources/upload"))).bearer_auth(&token);
    let upload = upload.header("content-type", multipart::CONTENT_TYPE);
    let form = multipart::form(&[], "bees.txt", "text/plain", TEXT.as_bytes());
    let source = Answer::of(upload.body(form)).await.json();
    let source = format!("{repository}/sources/{}", source["source_id"].as_str().unwrap());
    let get = async |path: &str| Answer::of(client().get(url(path)).bearer_auth(&token)).await;
    let facts = format!("{repository}/facts");
    let fact = eventually(Duration::from_mins(1), "the text has facts", async || {
        let listed = get(&facts).await.json();
        let id = listed["data"][0]["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| listed.to_string())
    });
    let fact = format!("{facts}/{}", fact.await);
    let (sources, group) = (format!("{repository}/sources"), format!("{fact}/group"));
    let grouped = format!("{facts}?grouped=true");
    let concept = relate(&mut conn).await;
    let concepts = format!("{repository}/concepts");
    let (found, concept) = (format!("{concepts}?q=b"), format!("{concepts}/{concept}"));
    let graph = format!("{repository}/graph?center={}", concept.rsplit('/').next().unwrap());
    let routes = [
        "/users/me",
        &repository,
        &source,
        &sources,
        &facts,
        &grouped,
        &fact,
        &group,
        &concepts,
        &found,
        &concept,
        &graph,
    ]
    .map(str::to_owned);
    let ask = async |times: i64| {
        for route in &routes {
            for _ in 0..times {
                assert_eq!(get(route).await.status, 200, "{route}");
            }
        }
    };
    // Until every connection that serves has made its plans.
    ask(REQUESTS / 5).await;
    run(&mut conn, "SELECT pg_stat_statements_reset()").await;
    ask(REQUESTS).await;

    // An empty SELECT goes with every commit, to see whether a statement failed before; there is nothing to plan in it.
    let statements: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT query, calls, plans FROM pg_stat_statements WHERE calls >= $1 AND query <> 'SELECT'",
    )
    .bind(REQUESTS)
    .fetch_all(&mut conn)
    .await
    .unwrap();
    assert!(statements.len() >= 8, "{statements:#?}");
    let anew: Vec<&(String, i64, i64)> =
        statements.iter().filter(|(_, calls, plans)| plans * 10 > *calls).collect();
    assert!(anew.is_empty(), "planned anew for requests: {anew:#?}");
}

/// Two concepts that speak of all facts; the id of one.
async fn relate(conn: &mut PgConnection) -> uuid::Uuid {
    for statement in [
        "INSERT INTO okt_repository.concepts (repository_id, id, canonical_name, name_key, context_no, fact_count)
         SELECT f.repository_id, gen_random_uuid(), n, n, min(x.no), count(DISTINCT f.no)
           FROM okt_repository.facts f
           JOIN okt_repository.contexts x ON x.repository_id = f.repository_id, unnest(ARRAY['bee', 'bumblebee']) AS n
          GROUP BY f.repository_id, n",
        "INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
         SELECT repository_id, name_key, no FROM okt_repository.concepts",
        "INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
         SELECT f.repository_id, c.no, f.no FROM okt_repository.facts f JOIN okt_repository.concepts c USING (repository_id)",
        "INSERT INTO okt_repository.concept_relations (repository_id, concept_no, other_no, shared_fact_count)
         SELECT c.repository_id, c.no, o.no, c.fact_count
           FROM okt_repository.concepts c JOIN okt_repository.concepts o USING (repository_id) WHERE o.no <> c.no",
    ] {
        run(conn, statement).await;
    }
    let id = "SELECT id FROM okt_repository.concepts WHERE name_key = 'bee'";
    sqlx::query_scalar(id).fetch_one(conn).await.unwrap()
}
