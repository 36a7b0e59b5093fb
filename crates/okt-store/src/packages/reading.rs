//! What a source says here, as a package gives it away.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use okt_interchange::package::{ConceptData, FactData, SummaryData};
use okt_model::{
    ContentHash, Error, Extraction, Money, RepositoryId, Savings, SourceId, SourceStatus, name_key,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concepts::members;
use crate::words::word;
use okt_pg::Result;

/// A source with what was made of it, as far as it can be given away.
#[derive(Clone, Debug)]
pub struct Shareable {
    pub status: SourceStatus,
    /// The address that was given; `None` for a file that somebody brought.
    pub url: Option<String>,
    /// The DOI that was given, not one that a document names.
    pub doi: Option<String>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub kind: Option<String>,
    pub language: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub processed_at: Option<DateTime<Utc>>,
    pub extraction: Option<Extraction>,
    pub facts: Vec<FactData>,
    pub concepts: Vec<ConceptData>,
    pub summaries: Vec<SummaryData>,
    /// What the vectors of the concepts are called, and in which space they are.
    pub vectors: Vec<(Uuid, Uuid, i16)>,
}

/// `None` if there is no such source.
#[tracing::instrument(level = "debug", name = "db.packages.read", skip_all, fields(source.id = %source))]
pub async fn read(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<Shareable>> {
    let row = sqlx::query!(
        r#"SELECT no, status, CASE WHEN locator_hash IS NOT NULL THEN url END AS url,
                  CASE WHEN doi_hash IS NOT NULL THEN doi END AS doi, title, author, kind, language, published_at,
                  processed_at, extraction::text
             FROM okt_repository.sources WHERE repository_id = $1 AND id = $2"#,
        repository.uuid(),
        source.uuid(),
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let extraction =
        row.extraction.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?;
    let mut shared = Shareable {
        status: word("sources.status", &row.status)?,
        url: row.url,
        doi: row.doi,
        title: row.title,
        author: row.author,
        kind: row.kind,
        language: row.language,
        published_at: row.published_at,
        processed_at: row.processed_at,
        extraction,
        facts: Vec::new(),
        concepts: Vec::new(),
        summaries: Vec::new(),
        vectors: Vec::new(),
    };
    let places = facts(conn, repository, row.no, &mut shared).await?;
    let mut links = links(conn, repository, row.no).await?;
    // Of what is not given away nothing else is, either.
    links.retain(|(fact, _)| places.contains_key(fact));
    let roots: BTreeSet<i64> = links.iter().map(|(_, concept)| *concept).collect();
    let roots: Vec<i64> = roots.into_iter().collect();
    let named = concepts(conn, repository, &roots, &mut shared).await?;
    for (fact, concept) in links {
        if let (Some(at), Some(id)) = (places.get(&fact), named.ids.get(&concept)) {
            shared.facts[*at].concept_ids.push(*id);
        }
    }
    keep_told_names(&mut shared, &named.merged);
    summaries(conn, repository, row.no, &named.ids, &mut shared).await?;
    Ok(Some(shared))
}

/// In the order in which the source says them; their places by their numbers. Not what a bundle said of the source: that is not ours to
/// sign; nor what people here rejected.
async fn facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    shared: &mut Shareable,
) -> Result<HashMap<i64, usize>> {
    let rows = sqlx::query!(
        r#"SELECT f.no, f.id, f.text, f.content_hash, l.image_id,
                  ARRAY(SELECT substring(t.text FROM t.sentences[2 * i + 1] + 1
                                          FOR greatest(t.sentences[2 * i + 2] - t.sentences[2 * i + 1], 0))
                          FROM unnest(l.sentences) AS i ORDER BY i) AS "quotes!: Vec<Option<String>>"
             FROM okt_repository.fact_sources l
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
             JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
             LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
            WHERE l.repository_id = $1 AND l.source_no = $2 AND l.import_no IS NULL
              AND CASE WHEN f.merged_into IS NULL THEN f.status
                       ELSE (SELECT c.status FROM okt_repository.facts c WHERE c.repository_id = $1 AND c.no = f.merged_into)
                  END IN ('new', 'stable')
            ORDER BY l.sentences, f.no"#,
        repository.uuid(),
        source,
    );
    let mut places = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        places.insert(row.no, shared.facts.len());
        let quotes: Vec<String> = (row.quotes.into_iter().flatten())
            // One on each line.
            .map(|quote| quote.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|quote| !quote.is_empty())
            .collect();
        let hash = ContentHash::try_from(row.content_hash.as_slice()).map_err(Error::internal)?;
        shared.facts.push(FactData {
            id: row.id,
            content: row.text,
            content_hash: hash.to_string(),
            source_text: quotes.join("\n"),
            image_id: row.image_id.map(|id| id.to_string()).unwrap_or_default(),
            concept_ids: Vec::new(),
        });
    }
    Ok(places)
}

/// Facts of the source, and the concepts that they or their duplicates speak of, as these are merged now; by their numbers. Not what
/// came with an import, nor what was found for duplicates that only sources say which are not given away.
async fn links(conn: &mut PgConnection, repository: RepositoryId, source: i64) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE said AS MATERIALIZED (
               SELECT f.no, CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS canonical
                 FROM okt_repository.fact_sources l
                 JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                WHERE l.repository_id = $1 AND l.source_no = $2 AND l.import_no IS NULL),
           alike AS MATERIALIZED (
               SELECT no, no AS other FROM said
                UNION
               SELECT s.no, f.no FROM said s
                CROSS JOIN LATERAL (SELECT s.canonical AS no
                                     UNION ALL
                                    SELECT o.no FROM okt_repository.facts o
                                     WHERE o.repository_id = $1 AND o.merged_into = s.canonical OFFSET 0) AS f
                WHERE EXISTS (SELECT FROM okt_repository.fact_sources l
                                JOIN okt_repository.sources o ON o.repository_id = $1 AND o.no = l.source_no
                               WHERE l.repository_id = $1 AND l.fact_no = f.no AND l.import_no IS NULL
                                 AND o.locator_hash IS NOT NULL AND o.extraction -> 'registry' IS NULL)),
           led AS (
               SELECT a.no AS fact_no, c.no, c.merged_into
                 FROM alike a
                 JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.fact_no = a.other AND l.import_no IS NULL
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = l.concept_no
                UNION
               SELECT l.fact_no, c.no, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT fact_no AS "fact_no!", no AS "concept_no!" FROM led WHERE merged_into IS NULL ORDER BY 1, 2"#,
        repository.uuid(),
        source,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.fact_no, row.concept_no)).collect())
}

/// What concepts are called.
#[derive(Default)]
struct Named {
    /// Their ids, by their numbers.
    ids: BTreeMap<i64, Uuid>,
    /// The names of those that were merged into them.
    merged: HashMap<Uuid, BTreeSet<String>>,
}

/// With the names of those that were merged into them.
async fn concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    roots: &[i64],
    shared: &mut Shareable,
) -> Result<Named> {
    let root_of: HashMap<i64, i64> = members(conn, repository, roots).await?.into_iter().collect();
    let all: Vec<i64> = root_of.keys().copied().collect();
    let called = sqlx::query!(
        r#"SELECT concept_no AS "no!", alias AS "name!", false AS "is_merged!" FROM okt_repository.concept_aliases
            WHERE repository_id = $1 AND concept_no = ANY ($2)
            UNION
           SELECT no, canonical_name, true FROM okt_repository.concepts
            WHERE repository_id = $1 AND no = ANY ($2) AND merged_into IS NOT NULL
            ORDER BY 1, 2"#,
        repository.uuid(),
        &all,
    );
    let mut aliases: HashMap<i64, BTreeSet<String>> = HashMap::new();
    let mut merged: HashMap<i64, BTreeSet<String>> = HashMap::new();
    for row in called.fetch_all(&mut *conn).await? {
        if let Some(root) = root_of.get(&row.no) {
            if row.is_merged {
                merged.entry(*root).or_default().insert(row.name.clone());
            }
            aliases.entry(*root).or_default().insert(row.name);
        }
    }
    let rows = sqlx::query!(
        r#"SELECT c.no, c.id, c.canonical_name, coalesce(c.unmapped_label, x.label) AS "context!",
                  CASE WHEN c.unmapped_label IS NULL THEN x.ontology_class END AS ontology_class, c.vector_id, c.embedded_in
             FROM okt_repository.concepts c
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
            WHERE c.repository_id = $1 AND c.no = ANY ($2)
            ORDER BY c.no"#,
        repository.uuid(),
        roots,
    );
    let mut named = Named::default();
    for row in rows.fetch_all(conn).await? {
        named.ids.insert(row.no, row.id);
        named.merged.insert(row.id, merged.remove(&row.no).unwrap_or_default());
        if let (Some(vector), Some(space)) = (row.vector_id, row.embedded_in.filter(|space| *space > 0)) {
            shared.vectors.push((row.id, vector, space));
        }
        shared.concepts.push(ConceptData {
            id: row.id,
            canonical_name: row.canonical_name,
            context: row.context,
            ontology_class: row.ontology_class.unwrap_or_default(),
            aliases: aliases.remove(&row.no).unwrap_or_default().into_iter().collect(),
        });
    }
    Ok(named)
}

/// Leaves out names that no fact about the concept tells here: a source that is not given away may have told them.
fn keep_told_names(shared: &mut Shareable, merged: &HashMap<Uuid, BTreeSet<String>>) {
    let place_of: HashMap<Uuid, usize> =
        shared.concepts.iter().enumerate().map(|(at, concept)| (concept.id, at)).collect();
    let mut told: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); shared.concepts.len()];
    for fact in &shared.facts {
        let text = name_key(&format!("{} {}", fact.content, fact.source_text));
        for at in fact.concept_ids.iter().filter_map(|id| place_of.get(id).copied()) {
            let concept = &shared.concepts[at];
            let names = [&concept.canonical_name].into_iter().chain(&concept.aliases);
            told[at].extend(names.filter(|name| text.contains(&name_key(name))).map(String::as_str));
        }
    }
    let told: Vec<BTreeSet<String>> =
        told.into_iter().map(|names| names.into_iter().map(str::to_owned).collect()).collect();
    for (concept, mut told) in shared.concepts.iter_mut().zip(told) {
        // What it was merged into may be called as only others call it.
        if !told.contains(&concept.canonical_name)
            && let Some(merged) = merged.get(&concept.id).filter(|merged| !merged.is_empty())
            && let Some(name) = merged.intersection(&told).chain(&told).next()
        {
            concept.canonical_name.clone_from(name);
        }
        told.remove(&concept.canonical_name);
        concept.aliases = told.into_iter().collect();
    }
}

/// Slices that are written and rest on facts of this source alone: what others say is theirs to tell.
async fn summaries(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    concepts: &BTreeMap<i64, Uuid>,
    shared: &mut Shareable,
) -> Result<()> {
    let numbers: Vec<i64> = concepts.keys().copied().collect();
    let rows = sqlx::query!(
        r#"SELECT s.id, s.concept_no, s.slice_number, s.is_open, s.content, c.facts AS "facts!: Vec<Uuid>"
             FROM okt_repository.concept_summaries s
            CROSS JOIN LATERAL (
                  SELECT array_agg(f.id ORDER BY f.no) AS facts, bool_and(l.fact_no IS NOT NULL) AS is_own
                    FROM okt_repository.summary_facts n
                    JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.fact_no
                    LEFT JOIN okt_repository.fact_sources l
                      ON l.repository_id = $1 AND l.source_no = $2 AND l.fact_no = n.fact_no AND l.import_no IS NULL
                   WHERE n.repository_id = $1 AND n.concept_no = s.concept_no AND n.slice_number = s.slice_number) AS c
            WHERE s.repository_id = $1 AND s.concept_no = ANY ($3) AND s.written = s.revision AND s.content <> ''
              AND s.import_no IS NULL AND c.is_own
            ORDER BY s.concept_no, s.slice_number"#,
        repository.uuid(),
        source,
        &numbers,
    );
    let known: BTreeSet<Uuid> = shared.facts.iter().map(|fact| fact.id).collect();
    for row in rows.fetch_all(conn).await? {
        let Some(concept) = concepts.get(&row.concept_no) else { continue };
        // One of a fact that people rejected says what that says.
        if !row.facts.iter().all(|id| known.contains(id)) {
            continue;
        }
        shared.summaries.push(SummaryData {
            id: row.id,
            concept_id: *concept,
            slice_number: row.slice_number,
            is_open: row.is_open,
            content: row.content,
            fact_ids: row.facts,
        });
    }
    Ok(())
}

/// Sources that can be given away, from after one on: processed ones that have an address and were taken apart here.
#[tracing::instrument(level = "debug", name = "db.packages.list_shareable", skip_all)]
pub async fn list_shareable(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: Option<SourceId>,
    limit: i64,
) -> Result<Vec<SourceId>> {
    let rows = sqlx::query_scalar!(
        "SELECT s.id FROM okt_repository.sources s
          WHERE s.repository_id = $1 AND ($2::uuid IS NULL OR s.id > $2) AND s.status = 'processed' AND s.fact_count > 0
            AND s.locator_hash IS NOT NULL
            AND s.extraction -> 'registry' IS NULL
          ORDER BY s.id LIMIT $3",
        repository.uuid(),
        after.map(SourceId::uuid),
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(SourceId::from).collect())
}

/// Sources that were added by their address and have no facts yet, because they could not be had or wait for a budget; from after one on.
#[tracing::instrument(level = "debug", name = "db.packages.list_missing", skip_all)]
pub async fn list_missing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: Option<SourceId>,
    limit: i64,
) -> Result<Vec<SourceId>> {
    let rows = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.sources
          WHERE repository_id = $1 AND ($2::uuid IS NULL OR id > $2) AND fact_count = 0 AND locator_hash IS NOT NULL
            AND (status = 'failed' AND body_sha256 IS NULL OR status = 'processing' AND waiting_for = 'budget')
          ORDER BY id LIMIT $3",
        repository.uuid(),
        after.map(SourceId::uuid),
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(SourceId::from).collect())
}

/// Those of these ids that facts of the repository have already, or whose text, by the hash beside it, is a fact here.
#[tracing::instrument(level = "debug", name = "db.packages.list_taken", skip_all)]
pub async fn list_taken(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[(Uuid, ContentHash)],
) -> Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = facts.iter().map(|(id, _)| *id).collect();
    let hashes: Vec<Vec<u8>> = facts.iter().map(|(_, hash)| hash.0.to_vec()).collect();
    let rows = sqlx::query_scalar!(
        r#"SELECT n.id AS "id!" FROM unnest($2::uuid[], $3::bytea[]) AS n (id, hash)
            WHERE EXISTS (SELECT FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.id = n.id)
               OR EXISTS (SELECT FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.content_hash = n.hash)"#,
        repository.uuid(),
        &ids,
        &hashes,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// What imports have saved on these days, both included.
#[tracing::instrument(level = "debug", name = "db.packages.sum_saved", skip_all)]
pub async fn sum_saved(
    conn: &mut PgConnection,
    repository: RepositoryId,
    (from, to): (NaiveDate, NaiveDate),
) -> Result<Savings> {
    let row = sqlx::query!(
        // However much producers say, it is a number.
        r#"SELECT count(*) AS "sources!", coalesce(sum(calls), 0)::bigint AS "calls!",
                  least(coalesce(sum(tokens_in), 0), 9223372036854775807)::bigint AS "tokens_in!",
                  least(coalesce(sum(tokens_out), 0), 9223372036854775807)::bigint AS "tokens_out!",
                  least(coalesce(sum(micro_usd), 0), 9223372036854775807)::bigint AS "micro_usd!"
             FROM okt_repository.imports
            WHERE repository_id = $1 AND kind = 'package' AND imported_at >= ($2::date)::timestamp AT TIME ZONE 'UTC'
              AND imported_at < ($3::date + 1)::timestamp AT TIME ZONE 'UTC'"#,
        repository.uuid(),
        from,
        to,
    );
    let row = row.fetch_one(conn).await?;
    Ok(Savings {
        sources: row.sources,
        calls: row.calls,
        tokens_in: row.tokens_in,
        tokens_out: row.tokens_out,
        usd: Money::from_micros(row.micro_usd),
    })
}
