//! Lists of the texts that have a word say the same as the texts, whatever came and went.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{RepositoryId, UnitKind};
use okt_search::decode;
use okt_store::search_units::{self, Listed, NewUnit, Range};
use okt_store::{Databases, Purpose};
use okt_testkit::db::TestDatabase;
use okt_testkit::soak::Dice;

/// A text of a few words, of which some are frequent.
fn any_unit(dice: &mut Dice, no: i64) -> NewUnit {
    let kind = UnitKind::ALL[dice.index(3)];
    let mut words = BTreeMap::new();
    for _ in 0..=dice.index(6) {
        let word = dice.index(40).min(dice.index(40));
        *words.entry(format!("w{word}")).or_default() += 1;
    }
    let sentences = (kind == UnitKind::Passage).then_some((0, 3));
    NewUnit { kind, no, sentences, words }
}

#[tokio::test]
async fn lists_are_those_of_the_texts_after_random_steps() {
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
    let repository = RepositoryId::mint();
    let mut dice = Dice::new(23);
    let mut known: BTreeMap<(UnitKind, i64), (i64, BTreeMap<String, u32>)> = BTreeMap::new();
    for _ in 0..150 {
        let mut tx = databases.begin("default", repository).await.unwrap();
        // Numbers of several blocks, and sources that share some of them.
        let number = i64::try_from(dice.below(8)).unwrap() * 2_000 + i64::try_from(dice.below(5)).unwrap();
        let source = i64::try_from(1 + dice.below(3)).unwrap();
        if dice.below(4) == 0 {
            let gone: Vec<(UnitKind, i64)> = known.keys().copied().filter(|_| dice.below(5) == 0).collect();
            let removed = search_units::give_up(&mut tx, repository, source, &gone).await.unwrap();
            assert_eq!(removed, u64::try_from(gone.len()).unwrap());
            known.retain(|unit, _| !gone.contains(unit));
        } else if dice.below(12) == 0 {
            // In parts, as of a large one.
            let mut after = None;
            loop {
                let gone = search_units::list_of_source(&mut tx, repository, source, after, 7).await.unwrap();
                search_units::give_up(&mut tx, repository, source, &gone).await.unwrap();
                after = gone.last().copied();
                if after.is_none() {
                    break;
                }
            }
            known.retain(|_, (owner, _)| *owner != source);
        } else {
            let units: BTreeMap<(UnitKind, i64), NewUnit> = (0..=dice.below(6))
                .map(|at| any_unit(&mut dice, number + i64::try_from(at).unwrap()))
                .map(|unit| ((unit.kind, unit.no), unit))
                .collect();
            let new: Vec<NewUnit> = units.values().cloned().collect();
            search_units::put(&mut tx, repository, source, &new, Some("en")).await.unwrap();
            for (key, unit) in units {
                // What another source has had found stays.
                let entry = known.entry(key).or_insert_with(|| (source, unit.words.clone()));
                if entry.0 == source {
                    entry.1 = unit.words;
                }
            }
        }
        tx.commit().await.unwrap();
    }
    let mut tx = databases.begin("default", repository).await.unwrap();
    let totals = search_units::totals(&mut tx, repository).await.unwrap();
    assert_eq!(totals.languages, ["en"]);
    for kind in UnitKind::ALL {
        let of_kind: Vec<_> = known.iter().filter(|((other, _), _)| *other == kind).collect();
        let words: BTreeSet<String> =
            of_kind.iter().flat_map(|(_, (_, words))| words.keys().cloned()).collect();
        assert!(words.len() > 5, "{kind:?} is hardly tried");
        let statistics = totals.statistics[&kind];
        assert_eq!(statistics.documents, u64::try_from(of_kind.len()).unwrap());
        let length: u32 = of_kind.iter().flat_map(|(_, (_, words))| words.values()).sum();
        assert_eq!(statistics.words, u64::from(length));
        let words: Vec<String> = words.into_iter().collect();
        let counted = search_units::count(&mut tx, repository, kind, &words).await.unwrap();
        let lists = search_units::read(&mut tx, repository, kind, &words, Range::default()).await.unwrap();
        for word in &words {
            let expected: Vec<(i64, u32, u32)> = of_kind
                .iter()
                .filter_map(|((_, no), (_, words))| Some((*no, *words.get(word)?, words.values().sum())))
                .collect();
            // The last blocks come first.
            let listed: Vec<(i64, u32, u32)> = lists[word]
                .iter()
                .rev()
                .flat_map(|list| decode(list.block, &list.entries).unwrap())
                .map(|posting| (posting.unit, posting.count, posting.length))
                .collect();
            assert_eq!(listed, expected, "{kind:?} {word}");
            let (documents, blocks) =
                (u64::try_from(expected.len()).unwrap(), u64::try_from(lists[word].len()).unwrap());
            assert_eq!(counted[word], Listed { documents, blocks });
            let range = Range { each: Some(1), up_to: Some(lists[word][0].block), ..Range::default() };
            let last = search_units::read(&mut tx, repository, kind, std::slice::from_ref(word), range)
                .await
                .unwrap();
            assert_eq!(last[word], lists[word][..1]);
            let blocks = [lists[word][lists[word].len() - 1].block];
            let range = Range { blocks: Some(&blocks), ..Range::default() };
            let first = search_units::read(&mut tx, repository, kind, std::slice::from_ref(word), range)
                .await
                .unwrap();
            assert_eq!(first[word], lists[word][lists[word].len() - 1..]);
        }
    }
    let all: Vec<(UnitKind, i64)> = known.keys().copied().collect();
    search_units::give_up(&mut tx, repository, 1, &all).await.unwrap();
    tx.commit().await.unwrap();
    let left = "SELECT (SELECT count(*) FROM okt_repository.search_lists) + (SELECT count(*) FROM okt_repository.search_units)
                     + (SELECT sum(documents + words)::bigint FROM okt_repository.search_totals)";
    let left: i64 = sqlx::query_scalar(left).fetch_one(&mut database.connect().await).await.unwrap();
    assert_eq!(left, 0, "nothing is left of what is gone");
}
