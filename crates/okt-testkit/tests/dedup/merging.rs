//! What a merge keeps: every source, every sentence, and sight of what only sounds the same.

use okt_model::{FactFilter, FactStatus, SourceId};
use okt_store::{fact_contradictions, fact_merges, facts};

use crate::room::{Dice, Room, Said, said};

const OLD: &str = "Honey bees tell each other where food is by dancing on the comb.";
const YOUNG: &str = "By dancing on the comb, honey bees tell each other where food is.";
const OPPOSITE: &str = "Honey bees do not tell each other where food is by dancing on the comb.";

fn resting(text: &str, vector: Vec<f32>, sentences: &[i32]) -> Said {
    Said { sentences: sentences.to_vec(), ..said(text, vector) }
}

#[tokio::test]
async fn one_idea_is_one_fact_with_all_its_sources_and_sentences() {
    let mut room = Room::open().await;
    let (first, second) = (room.source().await, room.source().await);
    let mut dice = Dice(1);
    let vector = dice.vector();
    let (near, opposite) = (dice.beside(&vector, 0.97), dice.beside(&vector, 0.98));
    room.say(first, &[resting(OLD, vector, &[3])]).await;
    room.say(second, &[resting(YOUNG, near, &[7, 9]), resting(OPPOSITE, opposite, &[12])]).await;
    room.compare().await;
    room.check().await;

    let mut tx = room.databases.begin("default", room.repository).await.unwrap();
    let listed =
        facts::list(&mut tx, room.repository, &FactFilter::default(), false, None, 10).await.unwrap();
    let texts: Vec<&str> = listed.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, [OPPOSITE, OLD], "one idea is shown once, and its opposite is still there");
    let kept = facts::find(&mut tx, room.repository, room.id_of(OLD).await).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.source_count), (FactStatus::Stable, 2));
    let sources = facts::list_sources(&mut tx, room.repository, kept.no, 10).await.unwrap();
    let sources: Vec<(SourceId, &[i32])> =
        sources.iter().map(|quoted| (quoted.link.source, quoted.link.sentences.as_slice())).collect();
    assert_eq!(sources, [(first, &[3][..]), (second, &[7, 9][..])]);
    let merged = fact_merges::list(&mut tx, room.repository, kept.no, 10).await.unwrap();
    assert_eq!(merged, [room.id_of(YOUNG).await]);
    let against = fact_contradictions::list(&mut tx, room.repository, kept.no, 10).await.unwrap();
    assert_eq!(against.len(), 1);
    assert_eq!((against[0].text.as_str(), against[0].difference.as_str()), (OPPOSITE, "negation"));
    assert!((against[0].cosine - 0.98).abs() < 0.001, "{against:?}");
    // What the other source says is found under it, once.
    let filter = FactFilter { source: Some(second), ..FactFilter::default() };
    let listed = facts::list(&mut tx, room.repository, &filter, false, None, 10).await.unwrap();
    let texts: Vec<&str> = listed.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, [OPPOSITE, OLD]);
    let filter = FactFilter { status: Some(FactStatus::Duplicate), ..FactFilter::default() };
    let listed = facts::list(&mut tx, room.repository, &filter, false, None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].text, YOUNG);
    tx.commit().await.unwrap();
    let (tenant, young) = (room.tenant(), [room.id_of(YOUNG).await.uuid()]);
    let there = room.vectors.store().there(&tenant, &room.space, &young).await.unwrap();
    assert!(there.is_empty(), "what another stands for is not found by its vector");
}

#[tokio::test]
async fn a_source_that_says_it_twice_is_counted_once() {
    let mut room = Room::open().await;
    let source = room.source().await;
    let mut dice = Dice(2);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.97);
    room.say(source, &[resting(OLD, vector, &[1, 2]), resting(YOUNG, near, &[2, 5])]).await;
    room.compare().await;
    room.check().await;
    let mut tx = room.databases.begin("default", room.repository).await.unwrap();
    let kept = facts::find(&mut tx, room.repository, room.id_of(OLD).await).await.unwrap().unwrap();
    assert_eq!(kept.source_count, 1);
    let sources = facts::list_sources(&mut tx, room.repository, kept.no, 10).await.unwrap();
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].link.sentences, [1, 2, 5]);
}

#[tokio::test]
async fn what_is_below_the_threshold_or_of_another_repository_is_left_alone() {
    let mut room = Room::open_with(&[("SVC__PROVIDERS__DEDUP__THRESHOLD", "0.97")]).await;
    let source = room.source().await;
    let mut dice = Dice(3);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.965);
    // Another repository says the very same.
    let tenant = okt_vectors::Tenant::new(okt_model::RepositoryId::mint(), "default");
    let foreign = okt_vectors::Point { id: okt_model::FactId::mint().uuid(), vector: near.clone() };
    room.vectors.store().upsert(&tenant, &room.space, &[foreign]).await.unwrap();
    room.say(source, &[said(OLD, vector), said(YOUNG, near)]).await;
    room.compare().await;
    let statuses: Vec<String> = room.statuses().await.into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, ["stable", "stable"]);
}

#[tokio::test]
async fn what_contradicts_a_part_of_a_fact_does_not_become_a_part_of_it() {
    let mut room = Room::open().await;
    let mut dice = Dice(7);
    let vector = dice.vector();
    room.say_as(room.source().await, &[said(OLD, vector.clone())], FactStatus::Stable).await;
    room.say_as(room.source().await, &[said(OPPOSITE, dice.beside(&vector, 0.97))], FactStatus::Stable).await;
    // As if nobody had seen that they differ.
    room.merge(OPPOSITE, OLD).await;
    room.say(room.source().await, &[said(YOUNG, dice.beside(&vector, 0.97))]).await;
    room.compare().await;
    room.check().await;
    let statuses: Vec<(String, Option<String>)> =
        room.statuses().await.into_iter().map(|(text, _, into)| (text, into)).collect();
    let old = Some(OLD.to_owned());
    assert_eq!(statuses, [(OLD.to_owned(), None), (OPPOSITE.to_owned(), old), (YOUNG.to_owned(), None)]);
    let mut tx = room.databases.begin("default", room.repository).await.unwrap();
    let kept = facts::find(&mut tx, room.repository, room.id_of(YOUNG).await).await.unwrap().unwrap();
    let against = fact_contradictions::list(&mut tx, room.repository, kept.no, 10).await.unwrap();
    assert_eq!(against.len(), 1, "it stays visible");
    assert_eq!(against[0].difference.as_str(), "negation");
    let pair: (i64, i64) = sqlx::query_as("SELECT fact_no, other_no FROM okt_repository.fact_contradictions")
        .fetch_one(&mut room.connect().await)
        .await
        .unwrap();
    assert_eq!(pair, (room.number_of(OPPOSITE).await, kept.no), "it names the two that differ");
    let old = room.id_of(OLD).await;
    let (from, next) = (&[FactStatus::Stable][..], FactStatus::Rejected);
    assert!(facts::mark(&mut tx, room.repository, old, from, next).await.unwrap());
    let against = fact_contradictions::list(&mut tx, room.repository, kept.no, 10).await.unwrap();
    assert_eq!(against.len(), 0, "what somebody rejected contradicts nobody");
}

/// Sources come and go after their facts were merged.
#[tokio::test]
async fn a_fact_stays_as_long_as_a_source_makes_it_or_one_that_it_stands_for() {
    let mut room = Room::open().await;
    let (first, second, third) = (room.source().await, room.source().await, room.source().await);
    let mut dice = Dice(4);
    let vector = dice.vector();
    let near = dice.beside(&vector, 0.97);
    room.say(first, &[said(OLD, vector.clone())]).await;
    room.say(second, &[said(YOUNG, near.clone())]).await;
    room.compare().await;
    // Who says the younger one again says the older one, too.
    room.say(third, &[said(YOUNG, near)]).await;
    room.check().await;
    let kept = room.id_of(OLD).await;
    let count = async || {
        let mut tx = room.databases.begin("default", room.repository).await.unwrap();
        facts::find(&mut tx, room.repository, kept).await.unwrap().map(|fact| fact.source_count)
    };
    assert_eq!(count().await, Some(3));
    room.forget(first).await;
    room.check().await;
    assert_eq!(count().await, Some(2), "what cites it still finds it");
    room.forget(second).await;
    room.check().await;
    assert_eq!(count().await, Some(1));
    room.forget(third).await;
    room.check().await;
    assert_eq!(room.statuses().await, []);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_merges")
        .fetch_one(&mut room.connect().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "nothing is left of what is gone");
}
