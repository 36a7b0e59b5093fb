use std::time::{Duration, Instant};

use okt_model::Locator;
use okt_testkit::db::run;
use okt_testkit::registry::TestRegistry;
use okt_testkit::tenants::explained;
use sha2::{Digest as _, Sha256};

const FEW: u64 = 20_000;
/// Rows that are made in one statement.
const CHUNK: u64 = 50_000;
const LOOK_UPS: [(&str, &str); 4] = [
    ("find_source", "SELECT id, 1 AS rank FROM okt_registry.sources WHERE url_hash = $1"),
    (
        "list_decompositions",
        "min(d.pushed_at) OVER (PARTITION BY d.model_id, d.key_id, d.pushed_by) AS since",
    ),
    ("find_decomposition", "ORDER BY withdrawn_at IS NOT NULL, version DESC LIMIT 1"),
    ("is_file_used", "SELECT EXISTS (SELECT FROM okt_registry.decompositions WHERE package_sha256 = $1)"),
];

/// How many packages there are; `OKT_REGISTRY_ROWS=1000000` for as many as a registry is meant for at first.
fn many() -> u64 {
    std::env::var("OKT_REGISTRY_ROWS").map_or(100_000, |rows| rows.parse().expect("a number"))
}

/// Sources from this number on to that one, each with a package.
async fn fill(registry: &TestRegistry, from: u64, to: u64) {
    let url = Locator::parse("https://example.org/7").unwrap().normalized;
    let (url, mut conn) = (url.strip_suffix('7').unwrap().to_owned(), registry.database.connect().await);
    let hash = |text: &str| format!("sha256(convert_to({text}, 'UTF8'))");
    for first in (from..to).step_by(usize::try_from(CHUNK).unwrap()) {
        let numbers = format!("generate_series({first}, {}) AS n", to.min(first + CHUNK) - 1);
        let sources = format!(
            "INSERT INTO okt_registry.sources (id, url, url_hash, doi, doi_hash, sha256, created_by)
             SELECT lpad(to_hex(n), 32, '0')::uuid, 'https://example.org/' || n, {}, '10.1000/' || n, {}, {}, 'okg_1'
               FROM {numbers}",
            hash(&format!("'{url}' || n")),
            hash("'10.1000/' || n"),
            hash("'content ' || n"),
        );
        let packages = format!(
            "INSERT INTO okt_registry.decompositions
                    (source_id, model_id, version, package_sha256, bytes, fact_count, concept_count, decomposed_at, pushed_by, fact_keys)
             SELECT lpad(to_hex(n), 32, '0')::uuid, 'far-model', 1, {}, 1, 1, 0, now(), 'okg_1', ARRAY[n::bigint]
               FROM {numbers}",
            hash("'package ' || n"),
        );
        run(&mut conn, &sources).await;
        run(&mut conn, &packages).await;
    }
    run(&mut conn, "ANALYZE okt_registry.sources, okt_registry.decompositions").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_in_a_registry_run_the_same_plans_for_few_packages_and_for_many() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(false, None).await;
    fill(&registry, 0, FEW).await;
    let few = explained(&mut registry.database.connect().await, &LOOK_UPS).await;
    fill(&registry, FEW, many()).await;
    let plans = explained(&mut registry.database.connect().await, &LOOK_UPS).await;
    assert!(few == plans, "with {FEW}:\n{few}\nwith {}:\n{plans}", many());
    assert!(!plans.contains("Seq Scan"), "{plans}");
    for index in [
        "sources_url_key",
        "sources_doi_key",
        "sources_sha256_key",
        "decompositions_pkey",
        "decompositions_package_idx",
    ] {
        assert!(plans.contains(index), "{index} is not used:\n{plans}");
    }
    // And they find what they are to find, soon.
    let mut times = Vec::new();
    for at in (0..many()).step_by(usize::try_from(many() / 20).unwrap()) {
        let sha256 = hex::encode(Sha256::digest(format!("content {at}")));
        for query in
            [format!("url=https://example.org/{at}"), format!("doi=10.1000/{at}"), format!("sha256={sha256}")]
        {
            let begun = Instant::now();
            let found = registry.get(&key, &format!("/api/v1/search?{query}")).await.json();
            times.push(begun.elapsed());
            assert_eq!(found["source"]["doi"], format!("10.1000/{at}"), "{query}");
            assert_eq!(found["decompositions"][0]["model_id"], "far-model", "{query}");
        }
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    assert!(median < Duration::from_millis(500), "{median:?}");
}
