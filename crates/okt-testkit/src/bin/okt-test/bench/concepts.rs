//! What concepts cost in a large repository: counting the relations of new facts against the bare upsert of the same pairs, in
//! CPU seconds of the server; relations of a concept against the bare read; and pages of lists by the clock.
//!
//! Arguments: how many concepts (1,000,000) and how many facts (1,000,000), which have nearly five concepts each.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use okt_model::{ConceptFilter, ConceptId, FoundBy, RelationBands, RepositoryId};
use okt_store::concept_relations::{self, Folded, STRONGEST};
use okt_store::concepts::{self, ConceptPlace, NewLink};
use okt_store::{Databases, Purpose, Tx, concept_graph};
use okt_testkit::cpu;
use okt_testkit::db::{TestDatabase, run as execute};
use okt_testkit::soak::Dice;
use sqlx::PgConnection;
use uuid::Uuid;

const ROUNDS: u64 = 5;
const NEW_FACTS: i64 = 1_000;
const BANDS: RelationBands = RelationBands { weak: 3, stable: 6 };
/// Of counting against the bare upsert, of the read against the bare one, and milliseconds of a page.
const LIMITS: (f64, f64, f64) = (2.0, 1.3, 50.0);

struct Repository {
    /// As jobs and as requests use it.
    worker: Databases,
    api: Databases,
    owner: PgConnection,
    id: RepositoryId,
    concepts: i64,
    facts: i64,
}

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let concepts = arguments.first().map_or(Ok(1_000_000), |text| text.parse())?;
    let facts = arguments.get(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let database = TestDatabase::migrated().await;
    let mut databases = Databases::open(&database.config(&[]), &[Purpose::Worker, Purpose::Api]).await?;
    let (api, worker) = (databases.remove(1), databases.remove(0));
    let owner = database.connect().await;
    let mut repository = Repository { worker, api, owner, id: RepositoryId::mint(), concepts, facts };
    repository.fill().await?;
    let mut dice = Dice::new(5);
    let counting = repository.counting(&mut dice).await?;
    let reading = repository.reading(&mut dice).await?;
    let page = repository.pages(&mut dice).await?;
    let graph = repository.graphs(&mut dice).await?;
    ensure!(counting <= LIMITS.0, "counting: {counting:.2} is more than {}", LIMITS.0);
    ensure!(reading <= LIMITS.1, "reading: {reading:.2} is more than {}", LIMITS.1);
    ensure!(page <= LIMITS.2, "a page: {page:.0} ms are more than {}", LIMITS.2);
    ensure!(graph <= LIMITS.2, "a graph: {graph:.0} ms are more than {}", LIMITS.2);
    Ok(())
}

impl Repository {
    async fn begin(&self) -> anyhow::Result<Tx> {
        Ok(self.worker.begin("default", self.id).await?)
    }

    /// A few concepts have most of the links.
    async fn fill(&mut self) -> anyhow::Result<()> {
        let (id, concepts, facts) = (self.id, self.concepts, self.facts);
        let began = Instant::now();
        let statements = format!(
            "INSERT INTO okt_repository.contexts (repository_id, no, label, description)
             SELECT '{id}', n, 'Context ' || n, '' FROM generate_series(1, 100) AS n;
             INSERT INTO okt_repository.concepts (repository_id, id, no, canonical_name, name_key, context_no)
             SELECT '{id}', gen_random_uuid(), n, initcap(w.name) || ' ' || n, w.name || ' ' || n, 1 + n % 100
               FROM generate_series(1, {concepts}) AS n,
                    LATERAL (SELECT substr(md5(n::text), 1, 6) AS name) AS w;
             INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
             SELECT repository_id, word, no
               FROM okt_repository.concepts, unnest(ARRAY[name_key, split_part(name_key, ' ', 2)]) AS word;
             SELECT setval('okt_repository.concepts_no_seq', {concepts} + 1);
             INSERT INTO okt_repository.facts
                    (repository_id, id, no, text, content_hash, kind, status, model, source_count)
             SELECT '{id}', gen_random_uuid(), n, 'Fact ' || n, sha256(n::text::bytea), 'text', 'stable', 'model', 1
               FROM generate_series(1, {facts}::bigint + {NEW_FACTS} * {ROUNDS} * 2) AS n;
             INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
             SELECT DISTINCT '{id}'::uuid, 1 + floor({concepts} * power(random(), 3))::bigint, n
               FROM generate_series(1, {facts}) AS n, generate_series(1, 5);
             ANALYZE"
        );
        for statement in statements.split(';') {
            execute(&mut self.owner, statement).await;
        }
        println!("filled in {:.0} s", began.elapsed().as_secs_f64());
        let began = Instant::now();
        let mut tx = self.begin().await?;
        let counted = concept_relations::recompute(&mut tx, self.id).await?;
        tx.commit().await?;
        println!("counted anew in {:.0} s: {counted:?}", began.elapsed().as_secs_f64());
        execute(&mut self.owner, "VACUUM ANALYZE").await;
        let links: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_concepts")
            .fetch_one(&mut self.owner)
            .await?;
        let sizes: Vec<(String, String)> = sqlx::query_as(
            "SELECT t, pg_size_pretty(sum(pg_total_relation_size(i.relid)))
               FROM unnest(ARRAY['fact_concepts', 'relation_facts', 'concept_relations', 'concepts', 'concept_words']) AS t,
                    pg_partition_tree(('okt_repository.' || t)::regclass) AS i GROUP BY t ORDER BY t",
        )
        .fetch_all(&mut self.owner)
        .await?;
        println!("{links} links; {sizes:?}");
        Ok(())
    }

    /// Links of new facts: their numbers and those of their concepts.
    fn new_links(&self, dice: &mut Dice, first: i64) -> Vec<(i64, i64)> {
        let mut links = Vec::new();
        for fact in first..first + NEW_FACTS {
            for _ in 0..5 {
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    reason = "any number will do"
                )]
                let concept = 1
                    + (self.concepts as f64 * (dice.below(1 << 30) as f64 / f64::from(1 << 30)).powi(3))
                        as i64;
                links.push((fact, concept));
            }
        }
        links.sort_unstable();
        links.dedup();
        links
    }

    /// How much more than the bare upsert of links and pairs it costs to link and to count.
    async fn counting(&mut self, dice: &mut Dice) -> anyhow::Result<f64> {
        let (mut ours, mut folding, mut bare) = (0.0, 0.0, 0.0);
        let mut first = self.facts + 1;
        for _ in 0..ROUNDS {
            let links = self.new_links(dice, first);
            first += NEW_FACTS;
            let numbers: Vec<i64> = links.iter().map(|(_, concept)| *concept).collect();
            let ids: Vec<(i64, Uuid)> = sqlx::query_as(
                "SELECT no, id FROM okt_repository.concepts WHERE repository_id = $1 AND no = ANY ($2)",
            )
            .bind(self.id.uuid())
            .bind(&numbers)
            .fetch_all(&mut self.owner)
            .await?;
            let ids: std::collections::HashMap<i64, Uuid> = ids.into_iter().collect();
            let new: Vec<NewLink> = links
                .iter()
                .map(|(fact, concept)| NewLink {
                    concept: ConceptId::from(ids[concept]),
                    fact: *fact,
                    found_by: FoundBy::Model,
                })
                .collect();
            let mut tx = self.begin().await?;
            let pid = backend(&mut tx).await?;
            let began = cpu::seconds(pid);
            // As jobs do: a few facts at a time, then a fold of what has gathered.
            for batch in new.chunks(50) {
                concepts::link(&mut tx, self.id, batch).await?;
            }
            let linked = cpu::seconds(pid);
            while concept_relations::fold(&mut tx, self.id, 500).await? != Folded::default() {}
            let now = cpu::seconds(pid);
            ours += now - began;
            folding += now - linked;
            tx.commit().await?;

            let links = self.new_links(dice, first);
            first += NEW_FACTS;
            let mut tx = self.begin().await?;
            let pid = backend(&mut tx).await?;
            let began = cpu::seconds(pid);
            self.bare(&mut tx, &links).await?;
            bare += cpu::seconds(pid) - began;
        }
        println!(
            "{NEW_FACTS} new facts {ROUNDS} times: {ours:.2} s of the server, of which folding {folding:.2} s; bare {bare:.2} s"
        );
        println!("counting: {:.2} times the bare upsert (limit {})", ours / bare, LIMITS.0);
        Ok(ours / bare)
    }

    /// What somebody would write who has nothing but links and pairs.
    async fn bare(&self, tx: &mut Tx, links: &[(i64, i64)]) -> anyhow::Result<()> {
        for batch in links.chunks(50) {
            let (facts, numbers): (Vec<i64>, Vec<i64>) = batch.iter().copied().unzip();
            sqlx::query(
                "INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
                 SELECT $1, c, f FROM unnest($2::bigint[], $3::bigint[]) AS n (c, f) ON CONFLICT DO NOTHING",
            )
            .bind(self.id.uuid())
            .bind(&numbers)
            .bind(&facts)
            .execute(&mut **tx)
            .await?;
        }
        for facts in links.chunk_by(|one, other| one.0 / 500 == other.0 / 500) {
            let (mut ones, mut others) = (Vec::new(), Vec::new());
            for of_fact in facts.chunk_by(|one, other| one.0 == other.0) {
                for (_, one) in of_fact {
                    for (_, other) in of_fact.iter().filter(|(_, other)| other != one) {
                        ones.push(*one);
                        others.push(*other);
                    }
                }
            }
            sqlx::query(
                "INSERT INTO okt_repository.concept_relations AS r (repository_id, concept_no, other_no, shared_fact_count)
                 SELECT $1, n.one, n.other, count(*) FROM unnest($2::bigint[], $3::bigint[]) AS n (one, other)
                  GROUP BY n.one, n.other
                 ON CONFLICT (repository_id, concept_no, other_no)
                 DO UPDATE SET shared_fact_count = r.shared_fact_count + excluded.shared_fact_count",
            )
            .bind(self.id.uuid())
            .bind(&ones)
            .bind(&others)
            .execute(&mut **tx)
            .await?;
        }
        Ok(())
    }

    /// A page of relations against the same rows read by somebody whom no policy holds back.
    async fn reading(&mut self, dice: &mut Dice) -> anyhow::Result<f64> {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        let mut tx = self.api.begin("default", self.id).await?;
        for _ in 0..300 {
            let concept = 1 + i64::try_from(dice.below(2_000))?;
            let began = Instant::now();
            let found =
                concept_relations::list(&mut tx, self.id, concept, BANDS, (3, 0), STRONGEST, 50).await?;
            ours.push(began.elapsed().as_secs_f64() * 1e3);
            let began = Instant::now();
            let rows = sqlx::query(
                "SELECT c.id, c.canonical_name, x.label, r.shared_fact_count FROM okt_repository.concept_relations r
                   JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = r.other_no
                   JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
                  WHERE r.repository_id = $1 AND r.concept_no = $2 AND r.shared_fact_count >= 3
                  ORDER BY r.shared_fact_count DESC, r.other_no DESC LIMIT 50",
            )
            .bind(self.id.uuid())
            .bind(concept)
            .fetch_all(&mut self.owner)
            .await?;
            bare.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(rows.len() == found.len(), "{} and {}", rows.len(), found.len());
        }
        let (ours, bare) = (at(&mut ours, 50)?, at(&mut bare, 50)?);
        println!("relations: {ours:.2} ms, bare {bare:.2} ms: {:.2} times (limit {})", ours / bare, LIMITS.1);
        Ok(ours / bare)
    }

    /// The slowest kind of page that is within the limit's promise, at the 95th percentile.
    async fn pages(&mut self, dice: &mut Dice) -> anyhow::Result<f64> {
        let mut worst: f64 = 0.0;
        for kind in ["facts", "context", "name", "q", "q by name", "q in small", "q in context"] {
            let mut times = Vec::new();
            for _ in 0..60 {
                let word = format!("{:06x}", dice.below(1 << 24));
                let place = ConceptPlace::Facts(
                    3 + i64::try_from(dice.below(30))?,
                    i64::try_from(dice.below(1_000_000))?,
                );
                let name = ConceptPlace::Name(word.clone(), 0);
                let floor = ConceptFilter { min_fact_count: 5, ..ConceptFilter::default() };
                // From what every sixteenth has to what one has.
                let q = Some(word[..=dice.index(5)].to_owned());
                let context_no = Some(1 + i64::try_from(dice.below(100))?);
                let (filter, after) = match kind {
                    "facts" => (floor, place),
                    "context" => (ConceptFilter { context_no, ..floor }, place),
                    "name" => (floor, name),
                    "q" => (ConceptFilter { q, ..floor }, ConceptPlace::MOST_FACTS),
                    "q by name" => (ConceptFilter { q, ..floor }, ConceptPlace::first_name()),
                    "q in small" => {
                        (ConceptFilter { q, ..ConceptFilter::default() }, ConceptPlace::MOST_FACTS)
                    }
                    _ => (ConceptFilter { q, context_no, ..floor }, ConceptPlace::MOST_FACTS),
                };
                let mut tx = self.api.begin("default", self.id).await?;
                let began = Instant::now();
                let found = concepts::list(&mut tx, self.id, &filter, &after, 50).await?;
                let names: Vec<String> = found.into_iter().map(|concept| concept.name_key).collect();
                concepts::list_contexts(&mut tx, self.id, &names, 20).await?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                tx.commit().await?;
            }
            let (middle, slow) = (at(&mut times, 50)?, at(&mut times, 95)?);
            println!("concepts by {kind}: {middle:.1} ms, p95 {slow:.1} ms");
            worst = worst.max(slow);
        }
        println!("pages: p95 {worst:.1} ms (limit {})", LIMITS.2);
        Ok(worst)
    }

    /// What the parts of the graph ask for: around a concept that has many relations, around one that has few, and the largest.
    async fn graphs(&mut self, dice: &mut Dice) -> anyhow::Result<f64> {
        let mut worst: f64 = 0.0;
        for (kind, among, depth, limit) in [
            ("around a large one", 1_000, 1, 50),
            ("around a large one in two steps", 1_000, 2, 50),
            ("around any one in three steps", self.concepts, 3, 50),
            ("200 around a large one", 1_000, 2, 200),
            ("of the largest", 0, 0, 50),
            ("of the 200 largest", 0, 0, 200),
        ] {
            let mut times = Vec::new();
            for _ in 0..60 {
                let mut tx = self.api.begin("default", self.id).await?;
                let began = Instant::now();
                let mut nodes: Vec<i64> = Vec::new();
                if among > 0 {
                    nodes.push(1 + i64::try_from(dice.below(u64::try_from(among)?))?);
                } else {
                    let (all, first) = (ConceptFilter::default(), ConceptPlace::MOST_FACTS);
                    let rows = i64::try_from(limit)?;
                    let found = concepts::list(&mut tx, self.id, &all, &first, rows).await?;
                    nodes.extend(found.iter().map(|concept| concept.no));
                }
                let mut layer = nodes.clone();
                for left in (1..=depth).rev() {
                    let each = i64::try_from((4 * limit / layer.len().max(1)).max(10).min(limit + 1))?;
                    let edges = concept_graph::list_neighbours(&mut tx, self.id, &layer, each).await?;
                    layer = edges.iter().map(|edge| edge.to).filter(|no| !nodes.contains(no)).collect();
                    layer.sort_unstable();
                    layer.dedup();
                    layer.truncate((limit - nodes.len()).div_ceil(left));
                    nodes.extend(&layer);
                }
                concepts::list_numbered(&mut tx, self.id, &nodes).await?;
                concept_graph::list_among(&mut tx, self.id, &nodes).await?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                tx.commit().await?;
            }
            let (middle, slow) = (at(&mut times, 50)?, at(&mut times, 95)?);
            println!("graph {kind}: {middle:.1} ms, p95 {slow:.1} ms");
            worst = worst.max(slow);
        }
        println!("graphs: p95 {worst:.1} ms (limit {})", LIMITS.2);
        Ok(worst)
    }
}

async fn backend(tx: &mut Tx) -> anyhow::Result<u32> {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut **tx).await?;
    Ok(u32::try_from(pid)?)
}

fn at(times: &mut [f64], percent: usize) -> anyhow::Result<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * percent / 100).copied().context("nothing was measured")
}
