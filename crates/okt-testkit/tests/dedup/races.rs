//! Sources that say the same come in at the same moment, and several jobs compare at once.

use okt_model::{DeduplicateFacts, Difference, FactStatus};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_testkit::jobs::Hired;

use crate::room::{Dice, Room, said};

#[tokio::test]
async fn many_who_compare_at_once_leave_one_fact_for_each_idea() {
    const IDEAS: usize = 20;
    const SOURCES: usize = 6;
    let room = Room::open().await;
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
        let source = room.source().await;
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
        room.say(*source, facts).await;
    }
    let _workers =
        (Hired::start(&room.config, Vec::new()).await, Hired::start(&room.config, Vec::new()).await);
    for (source, _) in &sources {
        room.ask(DeduplicateFacts { source: Some(*source) }).await;
        room.ask(DeduplicateFacts { source: None }).await;
    }
    room.settled().await;
    // What others changed under the hands of a job is compared once more.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    room.check().await;
    let stable = room.statuses().await.iter().filter(|(_, status, _)| status == "stable").count();
    assert_eq!(stable, IDEAS, "{:#?}", room.statuses().await);
}

/// Somebody said that two are not the same, and a third says the same as either. Two jobs come for them at the same moment.
#[tokio::test]
async fn what_somebody_took_apart_does_not_meet_again_in_a_third() {
    const IDEAS: usize = 60;
    let room = Room::open().await;
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
    room.say_as(room.source().await, &third, FactStatus::Stable).await;
    let (first, second) = (room.source().await, room.source().await);
    room.say(first, &one).await;
    room.say(second, &other).await;
    let mut judged = Vec::new();
    for (one, other) in one.iter().zip(&other) {
        let facts = (room.number_of(&one.text).await, room.number_of(&other.text).await);
        judged.push(NewContradiction { facts, difference: Difference::Judged, cosine: 0.97 });
    }
    let mut tx = room.databases.begin("default", room.repository).await.unwrap();
    fact_contradictions::insert(&mut tx, room.repository, &judged).await.unwrap();
    tx.commit().await.unwrap();
    room.ask(DeduplicateFacts { source: Some(first) }).await;
    room.ask(DeduplicateFacts { source: Some(second) }).await;
    let _workers =
        (Hired::start(&room.config, Vec::new()).await, Hired::start(&room.config, Vec::new()).await);
    room.settled().await;
    room.check().await;
    let statuses = room.statuses().await;
    let parts = statuses.iter().filter(|(_, _, into)| into.is_some()).count();
    assert_eq!(parts, IDEAS, "of each two one is a part of the third: {statuses:#?}");
    for (one, other) in one.iter().zip(&other) {
        let into = |text: &str| statuses.iter().find(|row| row.0 == text).and_then(|row| row.2.clone());
        let (one, other) = (into(&one.text), into(&other.text));
        assert!(one.is_none() || other.is_none(), "both are in {one:?}");
    }
}
