//! Two hundred pairs that differ and two hundred that do not, written by somebody who did not know the rules, all of them as
//! near to each other as near twins are.

use okt_model::content_hash;

use crate::dedup::planted_facts::{Dice, PlantedFacts, Said, said};

const DIFFER: &str = include_str!("../../../../okt-extract/src/guard/tests/judged-differ.tsv");
const PARAPHRASE: &str = include_str!("../../../../okt-extract/src/guard/tests/judged-paraphrase.tsv");

const RULE_DIFFER: &str = include_str!("../../../../okt-extract/src/same/tests/differ.tsv");
const RULE_SAME: &str = include_str!("../../../../okt-extract/src/same/tests/same.tsv");

/// Pairs at a cosine of 0.96, far from all others.
async fn compared(policy: &str, pairs: &[(&str, &str)]) -> (PlantedFacts, Vec<usize>) {
    let mut fixture = PlantedFacts::open_with(&[("SVC__PROVIDERS__DEDUP__POLICY", policy)]).await;
    let (one, other) = (fixture.source().await, fixture.source().await);
    let mut dice = Dice(11);
    let (mut first, mut second): (Vec<Said>, Vec<Said>) = (Vec::new(), Vec::new());
    for (a, b) in pairs {
        let vector = dice.vector();
        second.push(said(b, dice.beside(&vector, 0.96)));
        first.push(said(a, vector));
    }
    fixture.say(one, &first).await;
    fixture.say(other, &second).await;
    fixture.compare().await;
    fixture.check().await;
    let merged: std::collections::HashMap<String, Option<String>> =
        fixture.statuses().await.into_iter().map(|(text, _, into)| (text, into)).collect();
    let merged = pairs.iter().enumerate().filter(|(_, (a, b))| merged[*b].as_deref() == Some(*a));
    let merged = merged.map(|(at, _)| at).collect();
    (fixture, merged)
}

#[tokio::test]
async fn what_differs_is_never_merged_and_stays_in_sight() {
    let rows: Vec<Vec<&str>> = DIFFER.lines().map(|line| line.split('\t').collect()).collect();
    let pairs: Vec<(&str, &str)> = rows.iter().map(|row| (row[1], row[2])).collect();
    assert_eq!(pairs.len(), 200);
    let (fixture, merged) = compared("cosine", &pairs).await;
    let merged: Vec<&Vec<&str>> = merged.into_iter().map(|at| &rows[at]).collect();
    assert!(merged.is_empty(), "{} were merged: {merged:#?}", merged.len());
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_contradictions")
        .fetch_one(&mut fixture.connect().await)
        .await
        .unwrap();
    assert_eq!(kept, 200, "every refused merge is kept as a candidate contradiction");
}

#[tokio::test]
async fn what_says_the_same_in_other_words_becomes_one() {
    let pairs: Vec<(&str, &str)> = PARAPHRASE.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(pairs.len(), 200);
    let (_room, merged) = compared("cosine", &pairs).await;
    let apart: Vec<&(&str, &str)> =
        pairs.iter().enumerate().filter(|(at, _)| !merged.contains(at)).map(|(_, pair)| pair).collect();
    assert!(merged.len() >= 190, "{} of 200 were merged; not: {apart:#?}", merged.len());
}

/// Pairs that attack the rule, and pairs that it permits, through the job with the settings as they are by default.
#[tokio::test]
async fn by_default_two_become_one_only_where_every_difference_is_permitted() {
    let differ = distinct(RULE_DIFFER);
    assert!(differ.len() >= 150, "{}", differ.len());
    let (_fixture, merged) = compared("rule", &differ).await;
    let merged: Vec<&(&str, &str)> = merged.into_iter().map(|at| &differ[at]).collect();
    assert!(merged.is_empty(), "{} were merged: {merged:#?}", merged.len());

    let same = distinct(RULE_SAME);
    assert!(same.len() >= 40, "{}", same.len());
    let (_fixture, merged) = compared("rule", &same).await;
    let apart: Vec<_> = same.iter().enumerate().filter(|(at, _)| !merged.contains(at)).collect();
    assert!(apart.is_empty(), "{} were not merged: {apart:#?}", apart.len());
}

/// The last two columns of each line. A text that is there already would be the same fact by its hash.
fn distinct(table: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut seen = std::collections::HashSet::new();
    let pairs = table.lines().filter_map(|line| {
        let mut columns = line.rsplit('\t');
        let second = columns.next()?;
        Some((columns.next()?, second))
    });
    pairs.filter(|(a, b)| seen.insert(content_hash(a)) && seen.insert(content_hash(b))).collect()
}
