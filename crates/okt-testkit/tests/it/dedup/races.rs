//! Sources that say the same come in at the same moment, and several jobs compare at once.

use std::time::Duration;

use okt_model::{DeduplicateFacts, Difference, FactStatus, JobId};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Merge};
use okt_testkit::jobs::TestWorker;
use okt_testkit::wait::eventually;

use crate::dedup::planted_facts::{Dice, PlantedFacts, said};

#[tokio::test]
async fn many_who_compare_at_once_leave_one_fact_for_each_idea() {
    const IDEAS: usize = 20;
    const SOURCES: usize = 6;
    let fixture = PlantedFacts::open().await;
    let mut dice = Dice(6);
    let centres: Vec<Vec<f32>> = (0..IDEAS).map(|_| dice.vector()).collect();
    // Nothing that the words could be against.
    let ways: [fn(&str) -> String; SOURCES] = [
        |town| format!("A bridge spans the river in {town}."),
        |town| format!("In {town} a bridge spans the river."),
        |town| format!("In {town}, a bridge spans the river."),
        |town| format!("A bridge spans the river, in {town}."),
        |town| format!("A bridge spans the river in {town}"),
        |town| format!("In {town} a bridge spans the river!"),
    ];
    let mut sources = Vec::new();
    for way in ways {
        let source = fixture.source().await;
        let facts: Vec<_> = centres
            .iter()
            .enumerate()
            .map(|(idea, centre)| {
                let name = char::from(b'A' + u8::try_from(idea).unwrap());
                said(&way(&format!("Old{name}ton")), dice.beside(centre, 0.985))
            })
            .collect();
        sources.push((source, facts));
    }
    for (source, facts) in &sources {
        fixture.say(*source, facts).await;
    }
    let _workers = (
        TestWorker::start(&fixture.config, Vec::new()).await,
        TestWorker::start(&fixture.config, Vec::new()).await,
    );
    for (source, _) in &sources {
        fixture.ask(DeduplicateFacts { source: Some(*source) }).await;
        fixture.ask(DeduplicateFacts { source: None }).await;
    }
    fixture.settled().await;
    // What others changed under the hands of a job is compared once more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.check().await;
    let stable = fixture.statuses().await.iter().filter(|(_, status, _)| status == "stable").count();
    assert_eq!(stable, IDEAS, "{:#?}", fixture.statuses().await);
}

/// Somebody said that two are not the same, and a third says the same as either. Two jobs come for them at the same moment.
#[tokio::test]
async fn what_a_person_separated_does_not_meet_again_in_a_third() {
    const IDEAS: usize = 60;
    let fixture = PlantedFacts::open().await;
    let mut dice = Dice(8);
    let (mut third, mut one, mut other) = (Vec::new(), Vec::new(), Vec::new());
    for idea in 0..IDEAS {
        let (a, b) = (idea % 26, idea / 26);
        let name: String = [a, b].iter().map(|at| char::from(b'a' + u8::try_from(*at).unwrap())).collect();
        let (vector, town) = (dice.vector(), format!("Old{name}ton"));
        one.push(said(&format!("In {town} a bridge spans the river."), dice.beside(&vector, 0.985)));
        other.push(said(&format!("In {town}, a bridge spans the river."), dice.beside(&vector, 0.985)));
        third.push(said(&format!("A bridge spans the river in {town}."), vector));
    }
    fixture.say_as(fixture.source().await, &third, FactStatus::Stable).await;
    let (first, second) = (fixture.source().await, fixture.source().await);
    fixture.say(first, &one).await;
    fixture.say(second, &other).await;
    let mut judged = Vec::new();
    for (one, other) in one.iter().zip(&other) {
        let facts = (fixture.number_of(&one.text).await, fixture.number_of(&other.text).await);
        judged.push(NewContradiction {
            facts,
            difference: Difference::Judged,
            cosine: 0.97,
            found_by: okt_model::ContradictionFoundBy::RefusedMerge,
        });
    }
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    fact_contradictions::insert(&mut tx, fixture.repository, &judged).await.unwrap();
    tx.commit().await.unwrap();
    fixture.ask(DeduplicateFacts { source: Some(first) }).await;
    fixture.ask(DeduplicateFacts { source: Some(second) }).await;
    let _workers = (
        TestWorker::start(&fixture.config, Vec::new()).await,
        TestWorker::start(&fixture.config, Vec::new()).await,
    );
    fixture.settled().await;
    fixture.check().await;
    let statuses = fixture.statuses().await;
    let parts = statuses.iter().filter(|(_, _, into)| into.is_some()).count();
    assert_eq!(parts, IDEAS, "of each two one is a part of the third: {statuses:#?}");
    for (one, other) in one.iter().zip(&other) {
        let into = |text: &str| statuses.iter().find(|row| row.0 == text).and_then(|row| row.2.clone());
        let (one, other) = (into(&one.text), into(&other.text));
        assert!(one.is_none() || other.is_none(), "both are in {one:?}");
    }
}

/// A job has decided to merge into a fact, and waits for it because another job adds its opposite to it just then.
#[tokio::test]
async fn what_another_job_adds_to_a_fact_is_compared_before_something_is_merged_into_it() {
    const OLD: &str = "Honey bees tell each other where food is by dancing on the comb.";
    const YOUNG: &str = "By dancing on the comb, honey bees tell each other where food is.";
    const OPPOSITE: &str = "Honey bees do not tell each other where food is by dancing on the comb.";
    let mut fixture = PlantedFacts::open().await;
    let mut dice = Dice(13);
    let vector = dice.vector();
    fixture.say_as(fixture.source().await, &[said(OLD, vector.clone())], FactStatus::Stable).await;
    // Far from the others, so that the job does not come upon it by itself.
    fixture.say_as(fixture.source().await, &[said(OPPOSITE, dice.vector())], FactStatus::Stable).await;
    fixture.say(fixture.source().await, &[said(YOUNG, dice.beside(&vector, 0.97))]).await;

    let (fact, into) = (fixture.number_of(OPPOSITE).await, fixture.number_of(OLD).await);
    let mut other = fixture.databases.begin("default", fixture.repository).await.unwrap();
    fact_merges::hold(&mut other, fixture.repository, &[fact, into]).await.unwrap();
    let merge = Merge { fact, into, cosine: 0.97, by: okt_model::MergedBy::Cosine };
    fact_merges::merge(&mut other, fixture.repository, &[merge], JobId::mint()).await.unwrap();
    fixture.work().await;
    fixture.ask(DeduplicateFacts { source: None }).await;
    let mut conn = fixture.connect().await;
    eventually(Duration::from_secs(30), "the job waits for the fact", async || {
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
                                     WHERE datname = current_database() AND wait_event_type = 'Lock'
                                       AND query LIKE '%okt_repository.facts%FOR UPDATE OF f%')";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(&mut conn).await.unwrap();
        if waits { Ok(()) } else { Err("it does not") }
    })
    .await;
    other.commit().await.unwrap();
    fixture.settled().await;
    fixture.check().await;
    let statuses: Vec<(String, Option<String>)> =
        fixture.statuses().await.into_iter().map(|(text, _, into)| (text, into)).collect();
    let old = Some(OLD.to_owned());
    assert_eq!(statuses, [(OLD.to_owned(), None), (OPPOSITE.to_owned(), old), (YOUNG.to_owned(), None)]);
}
