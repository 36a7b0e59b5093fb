use okt_model::content_hash;
use okt_testkit::app::TestApp;
use okt_testkit::registry::package;
use serde_json::{Value, json};

use super::{FACTS, add, id, is_imported, start};

/// All that the repository knows, but for the source that is just being added.
async fn rows(app: &TestApp) -> String {
    let mut conn = app.connect().await;
    let mut all = Vec::new();
    for table in
        ["facts", "fact_sources", "concepts", "concept_aliases", "fact_concepts", "contexts", "imports"]
    {
        let rows = format!(
            "SELECT coalesce(string_agg(t::text, ',' ORDER BY t::text), '') FROM okt_repository.{table} t"
        );
        let rows: String = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&mut conn).await.unwrap();
        all.push(format!("{table}: {rows}"));
    }
    all.join("\n")
}

/// A package with something wrong in it leaves nothing, and the source is fetched.
#[tokio::test]
async fn a_package_with_something_wrong_leaves_nothing() {
    let (mut app, registry) = start().await;
    app.web.page("/empty", okt_testkit::web::Page::html("nothing").status(404));
    let dangling = json!("0197a3c0-0000-7000-8000-00000000dead");
    let cases: [(&str, Value); 8] = [
        ("/schema_version", json!(2)),
        ("/facts/2/content", json!("Gulls do not drink.")),
        ("/facts/2/concept_ids/0", dangling.clone()),
        ("/facts/2/content", json!("x".repeat(4_001))),
        ("/summaries/0/concept_id", dangling),
        ("/concepts/0/canonical_name", json!("\u{0}")),
        ("/facts/1/id", json!("00000000-0000-0000-0000-000000000001")),
        ("/decomposed_at", json!("now")),
    ];
    let before = rows(&app).await;
    for (pointer, value) in cases {
        let mut package = package(&FACTS);
        *package.pointer_mut(pointer).unwrap() = value;
        registry.offer(&app.web.url("/empty"), &package);
        let source = app.add_page("/empty").await;
        let seen = app.settled(&source).await;
        assert_eq!(
            (&seen["status"], &seen["failure"]["code"]),
            (&json!("failed"), &json!("not_found")),
            "{pointer}"
        );
        assert_eq!(rows(&app).await, before, "{pointer}");
        assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    }
    app.rest();
}

/// Ids of other rows get a package nothing of theirs.
#[tokio::test]
async fn a_package_with_the_ids_of_other_facts_changes_none_of_them() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let victim = id(&add(&app).await);
    let before = app.facts(&victim).await;
    let mut theft = package(&FACTS);
    for fact in theft["facts"].as_array_mut().unwrap() {
        let text = format!("Not so: {}", fact["content"].as_str().unwrap());
        fact["content_hash"] = json!(content_hash(&text).to_string());
        fact["content"] = json!(text);
    }
    theft["concepts"][0]["canonical_name"] = json!("Thief");
    theft["concepts"][0]["aliases"] = json!([]);
    registry.offer(&app.web.url("/theft"), &theft);
    let source = app.add_page("/theft").await;
    assert!(is_imported(&app.settled(&source).await));
    assert_eq!(app.facts(&victim).await, before);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 6);
    let ids = "SELECT count(DISTINCT id) FROM (SELECT id FROM okt_repository.facts UNION ALL SELECT id FROM okt_repository.concepts) AS i";
    assert_eq!(app.count(ids).await, 8, "nobody shares an id");
    let gulls = "SELECT count(*) FROM okt_repository.concepts WHERE canonical_name IN ('Gull', 'Thief')";
    assert_eq!(app.count(gulls).await, 2);
}

/// Something in a package that nobody has thought of, and the database does not take.
#[tokio::test]
async fn a_package_that_the_database_refuses_fails_no_source() {
    let (app, registry) = start().await;
    app.sql("ALTER TABLE okt_repository.facts ADD CONSTRAINT a_test CHECK (text NOT LIKE '%1.1 kg%')").await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let before = rows(&app).await;
    let seen = add(&app).await;
    assert!(!is_imported(&seen), "{seen:#}");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.imports").await, 0);
    assert_ne!(rows(&app).await, before, "it is fetched and read");
}

/// How many packages are made up; `OKT_HOSTILE_PACKAGES` for more.
fn many() -> usize {
    std::env::var("OKT_HOSTILE_PACKAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// The same packages every time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below.max(1) as u64).unwrap()
    }
}

/// Places of a document, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), all));
        }
        Value::Array(rows) => {
            rows.iter().enumerate().for_each(|(n, value)| places(value, &format!("{at}/{n}"), all));
        }
        _ => {}
    }
}

/// A package of its own facts with a few things wrong in it, or none; as bytes, because some are no JSON.
fn mutated(at: usize, victims: &[String], random: &mut Random) -> (Value, Vec<u8>) {
    let texts: Vec<String> =
        (0..3).map(|n| format!("Gull number {at} flew {n} times around the island.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut document = package(&texts);
    document["summaries"] = json!([]);
    for (n, fact) in document["facts"].as_array_mut().unwrap().iter_mut().enumerate() {
        fact["id"] = json!(uuid::Uuid::from_u128(0x5_0000_0000 + (at as u128) * 16 + n as u128));
    }
    document["concepts"][0]["id"] = json!(uuid::Uuid::from_u128(0x6_0000_0000 + at as u128));
    for fact in document["facts"].as_array_mut().unwrap() {
        fact["concept_ids"] = json!([uuid::Uuid::from_u128(0x6_0000_0000 + at as u128)]);
    }
    document["embeddings"] = json!({"model": "m", "dimensions": 2, "vectors": {document["facts"][0]["id"].as_str().unwrap(): [0.5, 0.5]}});
    let told = document.clone();
    for _ in 0..random.below(4) {
        let mut all = Vec::new();
        places(&document, "", &mut all);
        let place = all[random.below(all.len())].clone();
        let Some(value) = document.pointer_mut(&place) else { continue };
        *value = match random.below(12) {
            0 => Value::Null,
            1 => json!(victims[random.below(victims.len())]),
            2 => json!("0197a3c0-0000-7000-8000-00000000dead"),
            3 => json!("x".repeat(1 << (random.below(18)))),
            4 => json!(-1),
            5 => json!(1e300),
            6 => json!([]),
            7 => json!({}),
            8 => json!("\u{0}"),
            9 => json!(FACTS[random.below(3)]),
            10 => json!(2),
            _ => json!(content_hash(FACTS[0]).to_string()),
        };
    }
    let mut bytes = document.to_string();
    match random.below(12) {
        0 => bytes = bytes.replace("0.5", "NaN"),
        1 => bytes = bytes.replace("0.5", "1e999"),
        2 => bytes = bytes.replacen(":[", &format!(":{}", "[".repeat(random.below(200_000))), 1),
        3 => bytes.truncate(random.below(bytes.len())),
        4 => bytes = bytes.replacen("\"schema_version\":1", "\"schema_version\":2", 1),
        _ => {}
    }
    (told, bytes.into_bytes())
}

/// All of a package, or nothing of it; and whatever it is, what was here before is as it was.
#[tokio::test]
async fn mutated_packages_change_nothing_that_is_here() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let victim = id(&add(&app).await);
    app.quiet().await;
    let facts = app.facts(&victim).await;
    let mut ids: Vec<String> = facts.iter().map(|fact| fact["id"].as_str().unwrap().to_owned()).collect();
    ids.push("00000000-0000-0000-0000-0000000000c0".to_owned());
    let theirs = "SELECT md5(string_agg(r, ',' ORDER BY r)) FROM (
          SELECT row(f.no, f.id, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.created_at)::text
            FROM okt_repository.facts f JOIN okt_repository.fact_sources l ON l.fact_no = f.no
            JOIN okt_repository.sources s ON s.no = l.source_no WHERE s.id = '{victim}'
          UNION ALL SELECT l::text FROM okt_repository.fact_sources l JOIN okt_repository.sources s ON s.no = l.source_no WHERE s.id = '{victim}'
          UNION ALL SELECT t::text FROM okt_repository.source_texts t WHERE source_id = '{victim}'
          UNION ALL SELECT s::text FROM okt_repository.sources s WHERE id = '{victim}'
          UNION ALL SELECT row(c.no, c.id, c.canonical_name, c.context_no)::text FROM okt_repository.concepts c
                     WHERE c.id = '00000000-0000-0000-0000-0000000000c0') AS n (r)"
        .replace("{victim}", &victim);
    let theirs = async || -> String {
        sqlx::query_scalar(sqlx::AssertSqlSafe(&*theirs)).fetch_one(&mut app.connect().await).await.unwrap()
    };
    let before = theirs().await;
    let mut random = Random(27);
    let (mut imported, mut refused) = (0, 0);
    for batch in (0..many()).collect::<Vec<_>>().chunks(20) {
        let mut added = Vec::new();
        for at in batch {
            let path = format!("/hostile-{at}");
            let (told, bytes) = mutated(*at, &ids, &mut random);
            registry.offer_as(&app.web.url(&path), &told, bytes, *at);
            added.push(app.add_page(&path).await);
        }
        for source in added {
            let seen = app.settled(&source).await;
            let count = "SELECT count(*) FROM okt_repository.fact_sources l JOIN okt_repository.sources s ON s.no = l.source_no WHERE s.id = ";
            let rows = app.count(&format!("{count}'{source}'")).await;
            assert_eq!(seen["fact_count"], rows, "{seen:#}");
            if is_imported(&seen) {
                imported += 1;
                assert!(rows > 0, "{seen:#}");
            } else {
                refused += 1;
                assert_eq!((&seen["status"], rows), (&json!("failed"), 0), "{seen:#}");
                assert_eq!(seen["failure"]["code"], "not_found", "{seen:#}");
            }
        }
        assert_eq!(theirs().await, before);
    }
    assert!(imported > 0 && refused > 0, "{imported} imported, {refused} refused");
}
