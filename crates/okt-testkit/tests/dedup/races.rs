//! Sources that say the same come in at the same moment, and several jobs compare at once.

use okt_model::DeduplicateFacts;
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
