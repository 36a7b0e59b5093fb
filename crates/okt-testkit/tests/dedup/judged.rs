//! Two hundred pairs that differ and two hundred that do not, written by somebody who did not know the rules, all of them as
//! near to each other as near twins are.

use crate::room::{Dice, Room, Said, said};

const DIFFER: &str = include_str!("../../../okt-extract/src/guard/tests/judged-differ.tsv");
const PARAPHRASE: &str = include_str!("../../../okt-extract/src/guard/tests/judged-paraphrase.tsv");

/// Pairs at a cosine of 0.96, far from all others.
async fn compared(pairs: &[(&str, &str)]) -> (Room, Vec<usize>) {
    let mut room = Room::open().await;
    let (one, other) = (room.source().await, room.source().await);
    let mut dice = Dice(11);
    let (mut first, mut second): (Vec<Said>, Vec<Said>) = (Vec::new(), Vec::new());
    for (a, b) in pairs {
        let vector = dice.vector();
        second.push(said(b, dice.beside(&vector, 0.96)));
        first.push(said(a, vector));
    }
    room.say(one, &first).await;
    room.say(other, &second).await;
    room.compare().await;
    room.check().await;
    let merged: std::collections::HashMap<String, Option<String>> =
        room.statuses().await.into_iter().map(|(text, _, into)| (text, into)).collect();
    let merged = pairs.iter().enumerate().filter(|(_, (a, b))| merged[*b].as_deref() == Some(*a));
    let merged = merged.map(|(at, _)| at).collect();
    (room, merged)
}

#[tokio::test]
async fn what_differs_is_never_merged_and_stays_in_sight() {
    let rows: Vec<Vec<&str>> = DIFFER.lines().map(|line| line.split('\t').collect()).collect();
    let pairs: Vec<(&str, &str)> = rows.iter().map(|row| (row[1], row[2])).collect();
    assert_eq!(pairs.len(), 200);
    let (room, merged) = compared(&pairs).await;
    let merged: Vec<&Vec<&str>> = merged.into_iter().map(|at| &rows[at]).collect();
    assert!(merged.is_empty(), "{} were merged: {merged:#?}", merged.len());
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_contradictions")
        .fetch_one(&mut room.connect().await)
        .await
        .unwrap();
    assert_eq!(kept, 200, "every refused merge is kept as a candidate contradiction");
}

#[tokio::test]
async fn what_says_the_same_in_other_words_becomes_one() {
    let pairs: Vec<(&str, &str)> = PARAPHRASE.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(pairs.len(), 200);
    let (_room, merged) = compared(&pairs).await;
    let apart: Vec<&(&str, &str)> =
        pairs.iter().enumerate().filter(|(at, _)| !merged.contains(at)).map(|(_, pair)| pair).collect();
    assert!(merged.len() >= 190, "{} of 200 were merged; not: {apart:#?}", merged.len());
}
