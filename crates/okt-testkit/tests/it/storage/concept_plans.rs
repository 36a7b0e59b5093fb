//! Lists and lookups of concepts are found by index, although row-level security keeps most conditions from being used so.

use okt_store::Connection;
use okt_testkit::db::run;
use sqlx::AssertSqlSafe;

use crate::storage::concepts::Fixture;

/// How a statement of a file is run by the service, under row-level security.
async fn plan(conn: &mut Connection, mode: &str, statement: &str, values: &str) -> String {
    run(conn, &format!("SET LOCAL plan_cache_mode = {mode}")).await;
    run(conn, &format!("PREPARE planned AS {statement}")).await;
    let lines: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE planned ({values})")))
            .fetch_all(&mut *conn)
            .await
            .unwrap();
    run(conn, "DEALLOCATE planned").await;
    lines.join("\n")
}

/// The conditions under which an index is read.
fn conditions(plan: &str, index: &str) -> Vec<String> {
    let mut lines = plan.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.contains(index) {
            found.push(lines.next().unwrap_or_default().trim().to_owned());
        }
    }
    found
}

/// Many concepts, aliases, relations, links and facts.
async fn fill(fixture: &Fixture) {
    let id = fixture.repository;
    run(
        &mut fixture.database.connect().await,
        &format!(
            "INSERT INTO okt_repository.concepts
                    (repository_id, id, no, canonical_name, name_key, context_no, fact_count, merged_into)
             SELECT r.id, gen_random_uuid(), r.at * 1000000 + n, 'Name ' || n, 'name ' || n, 1 + n % 3, n % 900,
                    CASE WHEN n % 50 = 0 THEN n - 1 END
               FROM (VALUES ('{id}'::uuid, 0), (gen_random_uuid(), 1)) AS r (id, at), generate_series(1, 20000) AS n;
             INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
             SELECT repository_id, word, no FROM okt_repository.concepts, unnest(ARRAY[name_key, substr(name_key, 6)]) AS word;
             INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
             SELECT repository_id, no, 'alias ' || no, 'Alias ' || no, 'model' FROM okt_repository.concepts;
             INSERT INTO okt_repository.concept_relations (repository_id, concept_no, other_no, shared_fact_count)
             SELECT '{id}', 1 + n % 7, 10 + n, CASE WHEN n % 4 = 0 THEN 2 + n % 90 ELSE 1 END
               FROM generate_series(1, 30000) AS n;
             INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
             SELECT '{id}', 1 + n % 4000, n / 4 FROM generate_series(1, 80000) AS n;
             INSERT INTO okt_repository.facts (repository_id, id, no, text, content_hash, kind, status, model, source_count)
             SELECT '{id}', gen_random_uuid(), n, 'Fact', sha256(n::text::bytea), 'text', 'stable', 'model', 1
               FROM generate_series(0, 20000) AS n;
             INSERT INTO okt_repository.former_names (repository_id, context_no, name_key, concept_no)
             SELECT '{id}', 1 + n % 3, 'former ' || n, n FROM generate_series(1, 20000) AS n;
             INSERT INTO okt_repository.rejected_links (repository_id, content_hash, concept_no)
             SELECT '{id}', sha256(n::text::bytea), 1 + n % 100 FROM generate_series(1, 20000) AS n;
             INSERT INTO okt_repository.rejected_aliases (repository_id, alias_key, concept_no)
             SELECT '{id}', 'rejected ' || n, 1 + n % 100 FROM generate_series(1, 20000) AS n;
             ANALYZE okt_repository.former_names, okt_repository.rejected_links, okt_repository.rejected_aliases;
             ANALYZE okt_repository.concepts, okt_repository.concept_words, okt_repository.concept_aliases, okt_repository.concept_relations,
                     okt_repository.fact_concepts, okt_repository.facts, okt_repository.contexts;"
        ),
    )
    .await;
}

/// A statement reads an index under conditions on these columns.
async fn uses(conn: &mut Connection, statement: &str, values: &str, index: &str, columns: &[&str]) {
    // Planned once for all values.
    let plan = plan(conn, "force_generic_plan", statement, values).await;
    let found = conditions(&plan, index);
    let used = |line: &String| line.starts_with("Index Cond") && columns.iter().all(|one| line.contains(one));
    assert!(found.iter().any(used), "{index} {columns:?}: {found:#?}\n{plan}");
    assert!(!plan.contains("Seq Scan on concepts"), "{plan}");
}

#[tokio::test]
async fn what_people_decided_is_found_by_index() {
    let fixture = Fixture::open().await;
    let id = fixture.repository;
    fill(&fixture).await;
    let mut tx = fixture.begin().await;
    for (statement, values, index, columns) in [
        (
            include_str!("../../../../okt-store/src/sql/find_concepts.sql"),
            format!("'{id}', ARRAY['name 7'], ARRAY['Animal']"),
            "former_names_pkey",
            vec!["name_key =", "context_no ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/insert_aliases.sql"),
            format!("'{id}', ARRAY['{id}'::uuid], ARRAY['name 7'], ARRAY['Name 7'], ARRAY['model']"),
            "rejected_aliases_pkey",
            vec!["alias_key ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/decided_links.sql"),
            format!("'{id}', ARRAY[1, 2, 3]"),
            "rejected_links_pkey",
            vec!["content_hash ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/decided_links.sql"),
            format!("'{id}', ARRAY[1, 2, 3]"),
            "concepts_no_key",
            vec!["no = l_3.merged_into"],
        ),
    ] {
        uses(&mut tx, statement, &values, index, &columns).await;
    }
}

/// Whoever takes out what came with an import reads no more than that.
#[tokio::test]
async fn what_came_with_an_import_is_found_by_index() {
    let fixture = Fixture::open().await;
    let id = fixture.repository;
    fill(&fixture).await;
    let mut tx = fixture.begin().await;
    let statement = "SELECT FROM okt_repository.concepts WHERE repository_id = $1 AND import_no = ANY ($2)";
    let arguments = format!("'{id}', ARRAY[1, 2]::bigint[]");
    // It has only rows that came with an import; PostgreSQL 15 looks through those of the repository in it.
    uses(&mut tx, statement, &arguments, "concepts_import_idx", &["repository_id ="]).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of statements and their indexes")]
async fn lists_and_lookups_use_their_indexes_under_row_level_security() {
    let fixture = Fixture::open().await;
    let id = fixture.repository;
    fill(&fixture).await;
    let mut tx = fixture.begin().await;
    let nothing = "NULL";
    for (statement, values, index, columns) in [
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_by_facts.sql"),
            format!("'{id}', 100, 5, 5, {nothing}, 20"),
            "concepts_count_idx",
            vec!["ROW(", "fact_count >="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_of_context.sql"),
            format!("'{id}', 100, 5, 5, {nothing}, 20, 2"),
            "concepts_context_idx",
            vec!["context_no =", "ROW(", "fact_count >="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_by_name.sql"),
            format!("'{id}', 'name 7', 5, 5, E'\\U0010ffff', 20, NULL"),
            "concepts_name_key",
            vec!["ROW(", "name_key <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/find_concepts.sql"),
            format!("'{id}', ARRAY['name 7'], ARRAY['Animal']"),
            "concepts_name_key",
            vec!["name_key =", "context_no ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/find_concepts.sql"),
            format!("'{id}', ARRAY['name 7'], ARRAY['Animal']"),
            "concepts_merged_name_idx",
            vec!["name_key =", "context_no ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/find_concepts.sql"),
            format!("'{id}', ARRAY['name 7'], ARRAY['Animal']"),
            "concept_aliases_key_idx",
            vec!["alias_key ="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_relations.sql"),
            format!("'{id}', 3, 100, 5, 3, 0, 20"),
            "concept_no_shared_fact",
            vec!["concept_no =", "ROW(", "shared_fact_count >="],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_single_relations.sql"),
            format!("'{id}', 3, 100, 0, 20"),
            "concept_relations_p",
            vec!["concept_no =", "other_no <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concept_facts.sql"),
            format!("'{id}', 3, 100, 20"),
            "fact_concepts_p",
            vec!["concept_no = m.no", "fact_no <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_found.sql"),
            format!("'{id}', 'na', 'nb', 'na', 'nb', 5, NULL, false, '', 0, 100, 5, 20"),
            "concept_words_pkey",
            vec!["word_key >=", "word_key <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_found.sql"),
            format!("'{id}', 'na', 'nb', 'na', 'nb', 5, NULL, false, '', 0, 100, 5, 20"),
            "concept_aliases_key_idx",
            vec!["alias_key >=", "alias_key <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concepts_found.sql"),
            format!("'{id}', 'na', 'nb', 'na', 'nb', 5, NULL, false, '', 0, 100, 5, 20"),
            "concepts_no_key",
            vec!["no = f.no"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_shared_facts.sql"),
            format!("'{id}', 3, 4, 100, 20"),
            "fact_concepts_p",
            vec!["concept_no = m.no", "fact_no <"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concept_sources.sql"),
            format!("'{id}', 3, 1000, 100, 5, 20"),
            "fact_concepts_p",
            vec!["concept_no = m"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_concept_timeline.sql"),
            format!("'{id}', 3, 1000, 0, '2020-01-01', 5, 20"),
            "fact_sources_p",
            vec!["fact_no = c.no"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/list_neighbours.sql"),
            format!("'{id}', ARRAY[1, 2, 3], 20"),
            "concept_no_shared_fact",
            vec!["concept_no = n.no"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/changed_relation_facts.sql"),
            format!("'{id}', ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9]"),
            "concepts_no_key",
            vec!["no = links.concept_no"],
        ),
        (
            include_str!("../../../../okt-store/src/sql/link_facts.sql"),
            format!("'{id}', ARRAY['{id}'::uuid], ARRAY[1], ARRAY[1], NULL"),
            "concepts_no_key",
            vec!["no = l.merged_into"],
        ),
    ] {
        uses(&mut tx, statement, &values, index, &columns).await;
    }
}
