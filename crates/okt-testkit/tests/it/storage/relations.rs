//! Relations and counts of concepts are kept by increments; whatever happens in whatever order, they are what counting from
//! the links on would give.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use okt_model::{
    ConceptId, ConceptMergedBy, FactId, FactStatus, FoundBy, JobId, MergedBy, NewConceptMerge, NewFact,
    RepositoryId, SourceId,
};
use okt_store::concept_relations::{self, Folded, Recomputed};
use okt_store::concepts::{self, Emptied, NewLink};
use okt_store::contexts::{self, NewContext};
use okt_store::fact_merges::{self, Merge};
use okt_store::facts::{self, Made};
use okt_store::{Connection, Databases, Purpose, concept_merges};
use okt_testkit::concepts::file_concept;
use okt_testkit::db::{TestDatabase, run};
use okt_testkit::facts::{insert_source, new_fact};
use okt_testkit::soak::Dice;
use uuid::Uuid;

const TEXTS: usize = 60;
const NAMES: usize = 25;
const CONTEXTS: [&str; 3] = ["Animal", "Disease", "Concept"];

/// What is counted: facts of concepts, and facts of pairs of concepts from both sides.
type Counts = (BTreeMap<i64, i64>, BTreeMap<(i64, i64), i64>);

struct Fixture {
    database: TestDatabase,
    databases: Databases,
    repository: RepositoryId,
    sources: Vec<SourceId>,
}

impl Fixture {
    async fn open() -> Self {
        let database = TestDatabase::migrated().await;
        let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
        let repository = RepositoryId::mint();
        let mut sources = Vec::new();
        for _ in 0..8 {
            sources.push(insert_source(&databases, repository).await);
        }
        let fixture = Self { database, databases, repository, sources };
        let mut tx = fixture.begin().await;
        add_contexts(&mut tx, repository).await.unwrap();
        tx.commit().await.unwrap();
        fixture
    }

    async fn begin(&self) -> okt_store::Tx {
        self.databases.begin("default", self.repository).await.unwrap()
    }

    /// One thing that somebody does, in a transaction of its own. What another one stands in the way of is given up.
    async fn step(&self, dice: &mut Dice) -> &'static str {
        let mut tx = self.begin().await;
        let name = match act(&mut tx, self.repository, &self.sources, dice).await {
            Ok(name) => match tx.commit().await {
                Ok(()) => name,
                Err(error) if error.retryable() => "given up",
                Err(error) => panic!("{error:?}"),
            },
            Err(error) if stood_in_the_way(&error) => "given up",
            Err(error) => panic!("{error:?}"),
        };
        if dice.below(4) == 0 {
            self.fold(dice.below(9)).await;
        }
        name
    }

    async fn fold(&self, limit: u64) -> Folded {
        let mut tx = self.begin().await;
        let limit = i64::try_from(limit).unwrap() + 1;
        let folded = concept_relations::fold(&mut tx, self.repository, limit).await.unwrap();
        tx.commit().await.unwrap();
        folded
    }

    /// When the log is empty, the counts are those of somebody who counts with their fingers, and counting anew finds nothing.
    async fn check(&self) -> Counts {
        while self.fold(40).await != Folded::default() {}
        let (counted, expected) = (self.counted().await, self.expected().await);
        assert_eq!(counted, expected);
        let mut tx = self.begin().await;
        let wrong = concept_relations::recompute(&mut tx, self.repository).await.unwrap();
        assert_eq!(wrong, Recomputed::default());
        tx.commit().await.unwrap();
        counted
    }

    async fn counted(&self) -> Counts {
        let mut conn = self.database.connect().await;
        let concepts: Vec<(i64, i64)> =
            sqlx::query_as("SELECT no, fact_count FROM okt_repository.concepts WHERE fact_count <> 0")
                .fetch_all(&mut conn)
                .await
                .unwrap();
        let pairs: Vec<(i64, i64, i64)> = sqlx::query_as(
            "SELECT concept_no, other_no, shared_fact_count FROM okt_repository.concept_relations",
        )
        .fetch_all(&mut conn)
        .await
        .unwrap();
        let pairs = pairs.into_iter().map(|(one, other, count)| ((one, other), count));
        (concepts.into_iter().collect(), pairs.collect())
    }

    /// From facts, concepts and links as they are.
    async fn expected(&self) -> Counts {
        let mut conn = self.database.connect().await;
        let facts: Vec<(i64, String, Option<i64>)> =
            sqlx::query_as("SELECT no, status, merged_into FROM okt_repository.facts")
                .fetch_all(&mut conn)
                .await
                .unwrap();
        let concepts: Vec<(i64, Option<i64>)> =
            sqlx::query_as("SELECT no, merged_into FROM okt_repository.concepts")
                .fetch_all(&mut conn)
                .await
                .unwrap();
        let links: Vec<(i64, i64)> =
            sqlx::query_as("SELECT fact_no, concept_no FROM okt_repository.fact_concepts")
                .fetch_all(&mut conn)
                .await
                .unwrap();
        let facts: BTreeMap<i64, (String, Option<i64>)> =
            facts.into_iter().map(|(no, status, into)| (no, (status, into))).collect();
        let concepts: BTreeMap<i64, Option<i64>> = concepts.into_iter().collect();
        let mut of_facts: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for (fact, mut concept) in links {
            let canonical = facts[&fact].1.unwrap_or(fact);
            if !["new", "stable"].contains(&facts[&canonical].0.as_str()) {
                continue;
            }
            while let Some(into) = concepts[&concept] {
                concept = into;
            }
            of_facts.entry(canonical).or_default().insert(concept);
        }
        let mut counts = Counts::default();
        for concepts in of_facts.values() {
            for one in concepts {
                *counts.0.entry(*one).or_default() += 1;
                for other in concepts.iter().filter(|other| *other != one) {
                    *counts.1.entry((*one, *other)).or_default() += 1;
                }
            }
        }
        counts
    }
}

/// Another writer did, or has just removed the context that was to take others in.
fn stood_in_the_way(error: &okt_pg::Error) -> bool {
    error.retryable() || matches!(error, okt_pg::Error(okt_model::Error::NotFound("context")))
}

async fn add_contexts(conn: &mut Connection, repository: RepositoryId) -> okt_pg::Result<()> {
    let new = CONTEXTS.map(|label| NewContext {
        label: label.to_owned(),
        description: String::new(),
        ontology_class: None,
    });
    contexts::insert(conn, repository, &new).await?;
    Ok(())
}

/// Facts that are there to be seen.
async fn open_facts(conn: &mut Connection) -> Vec<(i64, Uuid)> {
    let open = "SELECT no, id FROM okt_repository.facts WHERE status IN ('new', 'stable') ORDER BY no";
    sqlx::query_as(open).fetch_all(conn).await.unwrap()
}

async fn ids(conn: &mut Connection, query: &'static str) -> Vec<Uuid> {
    sqlx::query_scalar(query).fetch_all(conn).await.unwrap()
}

fn some<T: Copy>(dice: &mut Dice, of: &[T], most: usize) -> Vec<T> {
    if of.is_empty() {
        return Vec::new();
    }
    (0..=dice.index(most)).map(|_| dice.pick(of)).collect()
}

async fn act(
    conn: &mut Connection,
    repository: RepositoryId,
    sources: &[SourceId],
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    match dice.below(25) {
        0..=3 => {
            let texts: BTreeSet<usize> = (0..=dice.index(9)).map(|_| dice.index(TEXTS)).collect();
            let facts: Vec<NewFact> = texts.into_iter().map(|at| new_fact(&format!("Fact {at}."))).collect();
            let made = Made { promptset: None, status: dice.pick(&[FactStatus::New, FactStatus::Stable]) };
            facts::replace(conn, repository, dice.pick(sources), &facts, dice.below(2) == 0, made).await?;
            Ok("facts of a source")
        }
        4 => {
            facts::forget_source(conn, repository, dice.pick(sources)).await?;
            Ok("source forgotten")
        }
        5..=9 => link(conn, repository, dice).await,
        10 => unlink(conn, repository, dice).await,
        11 | 12 | 22 => merge_facts(conn, repository, dice).await,
        13 | 24 => undo_fact(conn, repository, dice).await,
        14 => reject(conn, repository, dice).await,
        15 | 16 => merge_concepts(conn, repository, dice).await,
        17 | 18 => undo_concept(conn, repository, dice).await,
        19 | 20 => split(conn, repository, dice).await,
        21 => empty_context(conn, repository, dice).await,
        _ => {
            let all = some(dice, &open_facts(conn).await, 2);
            let all: Vec<i64> = all.into_iter().map(|(no, _)| no).collect();
            fact_merges::settle(conn, repository, &all).await?;
            Ok("facts settled")
        }
    }
}

async fn link(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let all = open_facts(conn).await;
    let mut links = Vec::new();
    for _ in 0..=dice.index(3) {
        let name = format!("Name {}", dice.index(NAMES));
        let concept = file_concept(conn, repository, &name, dice.pick(&CONTEXTS)).await?;
        for (fact, _) in some(dice, &all, 4) {
            links.push(NewLink { concept, fact, found_by: dice.pick(FoundBy::ALL) });
        }
    }
    concepts::link(conn, repository, &links).await?;
    Ok("facts linked")
}

async fn any_concept(conn: &mut Connection, dice: &mut Dice) -> Option<ConceptId> {
    let all = ids(conn, "SELECT id FROM okt_repository.concepts ORDER BY no").await;
    (!all.is_empty()).then(|| dice.pick(&all).into())
}

async fn unlink(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let Some(concept) = any_concept(conn, dice).await else { return Ok("nothing") };
    let all: Vec<i64> =
        sqlx::query_scalar("SELECT fact_no FROM okt_repository.fact_concepts ORDER BY fact_no, concept_no")
            .fetch_all(&mut *conn)
            .await?;
    let facts = some(dice, &all, 20);
    concepts::unlink(conn, repository, concept, &facts).await?;
    Ok("facts unlinked")
}

async fn merge_facts(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let all = open_facts(conn).await;
    let (Some(one), Some(other)) = (some(dice, &all, 1).pop(), some(dice, &all, 1).pop()) else {
        return Ok("nothing");
    };
    let (fact, into) = (one.0.max(other.0), one.0.min(other.0));
    let held = fact_merges::hold(conn, repository, &[fact, into]).await?;
    let open = |no: i64| held.iter().any(|held| held.no == no && held.open);
    if fact == into || !open(fact) || !open(into) {
        return Ok("nothing");
    }
    let merge = Merge { fact, into, cosine: 0.99, by: MergedBy::Cosine };
    fact_merges::merge(conn, repository, &[merge], JobId::mint()).await?;
    Ok("facts merged")
}

async fn undo_fact(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let all = ids(conn, "SELECT id FROM okt_repository.facts WHERE status = 'duplicate' ORDER BY no").await;
    let Some(id) = some(dice, &all, 1).pop() else { return Ok("nothing") };
    fact_merges::undo(conn, repository, FactId::from(id), None).await?;
    Ok("merge of facts undone")
}

async fn reject(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let all = ids(conn, "SELECT id FROM okt_repository.facts WHERE status <> 'duplicate' ORDER BY no").await;
    let Some(id) = some(dice, &all, 1).pop() else { return Ok("nothing") };
    let (from, next) = dice.pick(&[
        (FactStatus::Stable, FactStatus::Rejected),
        (FactStatus::Rejected, FactStatus::Stable),
        (FactStatus::Rejected, FactStatus::New),
    ]);
    facts::mark(conn, repository, FactId::from(id), &[from], next).await?;
    Ok("fact rejected or accepted")
}

async fn merge_concepts(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let (Some(concept), Some(into)) = (any_concept(conn, dice).await, any_concept(conn, dice).await) else {
        return Ok("nothing");
    };
    let by = ConceptMergedBy::Person;
    let merge =
        NewConceptMerge { concept, into, by, job: None, person: None, reason: Some("why".to_owned()) };
    let merged = concept_merges::insert(conn, repository, &merge).await?;
    Ok(if merged.is_some() { "concepts merged" } else { "nothing" })
}

async fn undo_concept(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let all: Vec<i64> = sqlx::query_scalar(
        "SELECT no FROM okt_repository.concept_merges WHERE undone_at IS NULL ORDER BY no",
    )
    .fetch_all(&mut *conn)
    .await?;
    let Some(no) = some(dice, &all, 1).pop() else { return Ok("nothing") };
    match concept_merges::undo(conn, repository, no, None).await {
        Err(okt_pg::Error(okt_model::Error::AlreadyExists(_))) => {
            Err(okt_model::Error::Overloaded("its name was taken meanwhile").into())
        }
        undone => undone.map(|_| "merge of concepts undone"),
    }
}

async fn split(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let Some(from) = any_concept(conn, dice).await else { return Ok("nothing") };
    let Some(concept) = concepts::get(conn, repository, from).await? else { return Ok("nothing") };
    let all: Vec<i64> = concepts::list_facts(conn, repository, concept.no, i64::MAX, 50)
        .await?
        .into_iter()
        .map(|(place, _)| place)
        .collect();
    let name = format!("Part {}", dice.index(NAMES));
    let to = file_concept(conn, repository, &name, dice.pick(&CONTEXTS)).await?;
    let facts = some(dice, &all, 5);
    concepts::relink(conn, repository, from, to, &facts).await?;
    Ok("concept split")
}

/// As the job does it, and the context is there again afterwards.
async fn empty_context(
    conn: &mut Connection,
    repository: RepositoryId,
    dice: &mut Dice,
) -> okt_pg::Result<&'static str> {
    let (from, to) = (dice.pick(&CONTEXTS), dice.pick(&CONTEXTS));
    let (Some(source), Some(target)) =
        (contexts::find(conn, repository, from).await?, contexts::find(conn, repository, to).await?)
    else {
        return Ok("nothing");
    };
    if from == to || !contexts::mark_merging(conn, repository, source.no, target.no).await? {
        return Ok("nothing");
    }
    while concepts::empty(conn, repository, source.no, target.no, 3).await? != Emptied::default() {}
    assert!(contexts::delete(conn, repository, source.no).await?);
    add_contexts(conn, repository).await?;
    Ok("context emptied")
}

#[tokio::test]
async fn counts_by_increments_are_those_of_counting_anew() {
    let steps = std::env::var("OKT_RELATION_STEPS").map_or(600, |steps| steps.parse().unwrap());
    let fixture = Fixture::open().await;
    let mut dice = Dice::new(22);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut largest = 0;
    for step in 1..=steps {
        *seen.entry(fixture.step(&mut dice).await).or_default() += 1;
        // Often, because a change that was missed is mended by the next one of the same fact.
        if step % 6 == 0 || step == steps {
            largest = fixture.check().await.1.len().max(largest);
        }
    }
    println!("{seen:?}, at most {largest} relations");
    assert!(seen.len() >= 12 && seen.values().all(|times| *times > 1), "not everything was tried: {seen:?}");
    assert!(largest > 100, "{largest}");
    live_concepts_are_counted(&fixture).await;
}

/// In contexts, and in the counter of the repository.
async fn live_concepts_are_counted(fixture: &Fixture) {
    let wrong: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT x.label, x.concept_count, count(c.no) FROM okt_repository.contexts x
           LEFT JOIN okt_repository.concepts c
             ON c.repository_id = x.repository_id AND c.context_no = x.no AND c.merged_into IS NULL
          GROUP BY x.no, x.label, x.concept_count HAVING x.concept_count <> count(c.no)
          UNION ALL
         SELECT 'all', value, (SELECT count(*) FROM okt_repository.concepts WHERE merged_into IS NULL)
           FROM okt_repository.counters
          WHERE name = 'concepts'
            AND value <> (SELECT count(*) FROM okt_repository.concepts WHERE merged_into IS NULL)",
    )
    .fetch_all(&mut fixture.database.connect().await)
    .await
    .unwrap();
    assert_eq!(wrong, []);
}

/// What should never happen: changes that nobody wrote down.
#[tokio::test]
async fn counting_anew_finds_and_mends_what_was_missed() {
    let fixture = Fixture::open().await;
    let mut dice = Dice::new(7);
    for _ in 0..40 {
        fixture.step(&mut dice).await;
    }
    fixture.check().await;
    run(
        &mut fixture.database.connect().await,
        "CREATE FUNCTION okt_repository.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER lose BEFORE INSERT ON okt_repository.relation_changes
             FOR EACH ROW EXECUTE FUNCTION okt_repository.lose()",
    )
    .await;
    for _ in 0..60 {
        fixture.step(&mut dice).await;
    }
    assert_ne!(fixture.counted().await, fixture.expected().await);
    let mut tx = fixture.begin().await;
    let wrong = concept_relations::recompute(&mut tx, fixture.repository).await.unwrap();
    tx.commit().await.unwrap();
    assert!(wrong.facts > 0 && wrong.relations > 0 && wrong.concepts > 0, "{wrong:?}");
    assert_eq!(fixture.counted().await, fixture.expected().await);
    fixture.check().await;
}

/// Entries of the log are taken while others write: none is lost, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_right_although_many_write_and_count_at_once() {
    let fixture = Arc::new(Fixture::open().await);
    let stop = Arc::new(AtomicBool::new(false));
    let folding = {
        let (fixture, stop) = (Arc::clone(&fixture), Arc::clone(&stop));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                fixture.fold(20).await;
            }
        })
    };
    let writers = (1..=3).map(|seed| {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            let mut dice = Dice::new(seed);
            let mut given_up = 0;
            for _ in 0..60 {
                given_up += u32::from(fixture.step(&mut dice).await == "given up");
            }
            given_up
        })
    });
    let mut given_up = 0;
    for writer in writers.collect::<Vec<_>>() {
        given_up += writer.await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    folding.await.unwrap();
    println!("{given_up} of 180 steps were given up");
    assert!(given_up < 60, "{given_up}");
    fixture.check().await;
    live_concepts_are_counted(&fixture).await;
}
