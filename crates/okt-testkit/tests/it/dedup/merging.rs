//! What a merge keeps: every source, every sentence, and sight of what only sounds the same.

use okt_model::{FactFilter, FactId, FactStatus, SourceId};
use okt_store::{fact_contradictions, fact_merges, facts};
use sqlx::PgConnection;

use crate::dedup::planted_facts::{Dice, PlantedFacts, Said, said};

const OLD: &str = "Honey bees tell each other where food is by dancing on the comb.";
const YOUNG: &str = "By dancing on the comb, honey bees tell each other where food is.";
const OPPOSITE: &str = "Honey bees do not tell each other where food is by dancing on the comb.";

fn resting(text: &str, vector: Vec<f32>, sentences: &[i32]) -> Said {
    Said { sentences: sentences.to_vec(), ..said(text, vector) }
}

/// A fact with its duplicates.
async fn all_of(conn: &mut PgConnection, fixture: &PlantedFacts, fact: i64) -> Vec<i64> {
    let merged = fact_merges::list(conn, fixture.repository, fact, 10).await.unwrap();
    std::iter::once(fact).chain(merged.into_iter().map(|(no, _)| no)).collect()
}

#[tokio::test]
async fn one_idea_is_one_fact_with_all_its_sources_and_sentences() {
    let mut fixture = PlantedFacts::open().await;
    let (first, second) = (fixture.source().await, fixture.source().await);
    let mut dice = Dice(1);
    let vector = dice.vector();
    let (near, opposite) = (dice.beside(&vector, 0.97), dice.beside(&vector, 0.98));
    fixture.say(first, &[resting(OLD, vector, &[3])]).await;
    fixture.say(second, &[resting(YOUNG, near, &[7, 9]), resting(OPPOSITE, opposite, &[12])]).await;
    fixture.compare().await;
    fixture.check().await;

    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let listed =
        facts::list(&mut tx, fixture.repository, &FactFilter::default(), false, None, 10).await.unwrap();
    let texts: Vec<&str> = listed.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, [OPPOSITE, OLD], "one idea is shown once, and its opposite is still there");
    let kept = facts::find(&mut tx, fixture.repository, fixture.id_of(OLD).await).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.source_count), (FactStatus::Stable, 2));
    let all = all_of(&mut tx, &fixture, kept.no).await;
    let sources = facts::list_sources(&mut tx, fixture.repository, &all, 10).await.unwrap();
    let sources: Vec<(SourceId, &[i32])> =
        sources.iter().map(|quoted| (quoted.link.source, quoted.link.sentences.as_slice())).collect();
    assert_eq!(sources, [(first, &[3][..]), (second, &[7, 9][..])]);
    let merged = fact_merges::list(&mut tx, fixture.repository, kept.no, 10).await.unwrap();
    let merged: Vec<FactId> = merged.into_iter().map(|(_, id)| id).collect();
    assert_eq!(merged, [fixture.id_of(YOUNG).await]);
    let all = all_of(&mut tx, &fixture, kept.no).await;
    let against = fact_contradictions::list(&mut tx, fixture.repository, kept.no, &all, 10).await.unwrap();
    assert_eq!(against.len(), 1);
    assert_eq!((against[0].text.as_str(), against[0].difference.as_str()), (OPPOSITE, "negation"));
    assert!((against[0].cosine - 0.98).abs() < 0.001, "{against:?}");
    // What the other source says is found under it, once.
    let filter = FactFilter { source: Some(second), ..FactFilter::default() };
    let listed = facts::list(&mut tx, fixture.repository, &filter, false, None, 10).await.unwrap();
    let texts: Vec<&str> = listed.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, [OPPOSITE, OLD]);
    let filter = FactFilter { status: Some(FactStatus::Duplicate), ..FactFilter::default() };
    let listed = facts::list(&mut tx, fixture.repository, &filter, false, None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].text, YOUNG);
    tx.commit().await.unwrap();
    let (tenant, young) = (fixture.tenant(), [fixture.id_of(YOUNG).await.uuid()]);
    let there = fixture.vectors.store().existing(&tenant, &fixture.space, &young).await.unwrap();
    assert!(there.is_empty(), "a duplicate is not found by its vector");
}

#[tokio::test]
async fn a_source_that_says_it_twice_is_counted_once() {
    let mut fixture = PlantedFacts::open().await;
    let source = fixture.source().await;
    let mut dice = Dice(2);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.97);
    fixture.say(source, &[resting(OLD, vector, &[1, 2]), resting(YOUNG, near, &[2, 5])]).await;
    fixture.compare().await;
    fixture.check().await;
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let kept = facts::find(&mut tx, fixture.repository, fixture.id_of(OLD).await).await.unwrap().unwrap();
    assert_eq!(kept.source_count, 1);
    let all = all_of(&mut tx, &fixture, kept.no).await;
    let sources = facts::list_sources(&mut tx, fixture.repository, &all, 10).await.unwrap();
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].link.sentences, [1, 2, 5]);
}

#[tokio::test]
async fn what_is_below_the_threshold_or_of_another_repository_is_left_alone() {
    let mut fixture = PlantedFacts::open_with(&[("SVC__PROVIDERS__DEDUP__THRESHOLD", "0.97")]).await;
    let source = fixture.source().await;
    let mut dice = Dice(3);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.965);
    // Another repository says the very same.
    let tenant = okt_vectors::Tenant::new(okt_model::RepositoryId::mint(), "default");
    let foreign = okt_vectors::Point { id: okt_model::FactId::mint().uuid(), vector: near.clone() };
    fixture.vectors.store().upsert(&tenant, &fixture.space, &[foreign]).await.unwrap();
    fixture.say(source, &[said(OLD, vector), said(YOUNG, near)]).await;
    fixture.compare().await;
    let statuses: Vec<String> = fixture.statuses().await.into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, ["stable", "stable"]);
}

#[tokio::test]
async fn what_contradicts_a_part_of_a_fact_does_not_become_a_part_of_it() {
    let mut fixture = PlantedFacts::open().await;
    let mut dice = Dice(7);
    let vector = dice.vector();
    fixture.say_as(fixture.source().await, &[said(OLD, vector.clone())], FactStatus::Stable).await;
    fixture
        .say_as(fixture.source().await, &[said(OPPOSITE, dice.beside(&vector, 0.97))], FactStatus::Stable)
        .await;
    // As if nobody had seen that they differ.
    fixture.merge(OPPOSITE, OLD).await;
    fixture.say(fixture.source().await, &[said(YOUNG, dice.beside(&vector, 0.97))]).await;
    fixture.compare().await;
    fixture.check().await;
    let statuses: Vec<(String, Option<String>)> =
        fixture.statuses().await.into_iter().map(|(text, _, into)| (text, into)).collect();
    let old = Some(OLD.to_owned());
    assert_eq!(statuses, [(OLD.to_owned(), None), (OPPOSITE.to_owned(), old), (YOUNG.to_owned(), None)]);
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let kept = facts::find(&mut tx, fixture.repository, fixture.id_of(YOUNG).await).await.unwrap().unwrap();
    let all = all_of(&mut tx, &fixture, kept.no).await;
    let against = fact_contradictions::list(&mut tx, fixture.repository, kept.no, &all, 10).await.unwrap();
    assert_eq!(against.len(), 1, "it stays visible");
    assert_eq!(against[0].difference.as_str(), "negation");
    let pair: (i64, i64) = sqlx::query_as("SELECT fact_no, other_no FROM okt_repository.fact_contradictions")
        .fetch_one(&mut fixture.connect().await)
        .await
        .unwrap();
    assert_eq!(pair, (fixture.number_of(OPPOSITE).await, kept.no), "it names the two that differ");
    let old = fixture.id_of(OLD).await;
    let (from, next) = (&[FactStatus::Stable][..], FactStatus::Rejected);
    assert!(facts::mark(&mut tx, fixture.repository, old, from, next).await.unwrap());
    let all = all_of(&mut tx, &fixture, kept.no).await;
    let against = fact_contradictions::list(&mut tx, fixture.repository, kept.no, &all, 10).await.unwrap();
    assert_eq!(against.len(), 0, "what somebody rejected contradicts nobody");
}

/// Sources come and go after their facts were merged.
#[tokio::test]
async fn a_fact_stays_as_long_as_a_source_makes_it_or_one_of_its_duplicates() {
    let mut fixture = PlantedFacts::open().await;
    let (first, second, third) = (fixture.source().await, fixture.source().await, fixture.source().await);
    let mut dice = Dice(4);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.97);
    fixture.say(first, &[said(OLD, vector.clone())]).await;
    fixture.say(second, &[said(YOUNG, near.clone())]).await;
    fixture.compare().await;
    // Who says the younger one again says the older one, too.
    fixture.say(third, &[said(YOUNG, near)]).await;
    fixture.check().await;
    let kept = fixture.id_of(OLD).await;
    let count = async || {
        let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
        facts::find(&mut tx, fixture.repository, kept).await.unwrap().map(|fact| fact.source_count)
    };
    assert_eq!(count().await, Some(3));
    fixture.forget(first).await;
    fixture.check().await;
    assert_eq!(count().await, Some(2), "what cites it still finds it");
    fixture.forget(second).await;
    fixture.check().await;
    assert_eq!(count().await, Some(1));
    fixture.forget(third).await;
    fixture.check().await;
    assert_eq!(fixture.statuses().await, []);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_merges")
        .fetch_one(&mut fixture.connect().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "nothing is left of what is gone");
}
