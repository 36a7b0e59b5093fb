//! Near twins at known cosines among many facts, all of them new: those above the threshold are found, and nothing below it
//! is merged.
//!
//! The short form. `OKT_DEDUP_FACTS=50000` is the long one, with the bar for what it takes beyond the bare search; it is run
//! with the test binary itself, built in release.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::dedup::planted_facts::{Dice, PlantedFacts, Said, dot, said};

const COSINES: [f64; 5] = [0.930, 0.939, 0.941, 0.950, 0.990];

/// A name that no other number has, in letters: numbers would keep facts apart.
fn name(number: usize) -> String {
    let mut letters = String::new();
    let mut rest = number;
    for _ in 0..5 {
        letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap()));
        rest /= 26;
    }
    letters
}

#[tokio::test]
async fn planted_twins_are_found_and_nothing_below_the_threshold_is_merged() {
    let facts: usize = std::env::var("OKT_DEDUP_FACTS").map_or(800, |text| text.parse().unwrap());
    let planted = facts / 25;
    let mut fixture = PlantedFacts::open().await;
    let source = fixture.source().await;
    let mut dice = Dice(9);
    let old: Vec<Said> = (0..facts)
        .map(|at| said(&format!("The moth {} lives on the slopes of the hill.", name(at)), dice.vector()))
        .collect();
    for (at, part) in old.chunks(10_000).enumerate() {
        let source = if at == 0 { source } else { fixture.source().await };
        fixture.say(source, part).await;
    }
    fixture.vectors.store().index(&fixture.tenant(), &fixture.space).await.unwrap();
    let twin = |at: usize| &old[at * (facts / planted)];
    let mut young = Vec::new();
    let mut expected: HashMap<String, (f64, String)> = HashMap::new();
    for at in 0..planted {
        let (cosine, twin) = (COSINES[at % COSINES.len()], twin(at));
        let text = twin.text.replace("lives on the slopes of the hill", "lives on the hill's slopes");
        expected.insert(text.clone(), (cosine, twin.text.clone()));
        young.push(said(&text, dice.beside(&twin.vector, cosine)));
    }
    fixture.say(fixture.source().await, &young).await;
    fixture.work().await;
    let all: Vec<Said> = old.iter().chain(&young).cloned().collect();
    // The bar is one of the long form.
    let bare = if facts >= 50_000 { Some(bare(&fixture, &all).await) } else { None };
    let begun = Instant::now();
    fixture.compare().await;
    let took = begun.elapsed();
    fixture.check().await;
    let (mut found, mut wanted) = (HashMap::new(), HashMap::new());
    for (text, _, into) in fixture.statuses().await {
        let Some((cosine, twin)) = expected.get(&text) else {
            assert_eq!(into, None, "an old fact was merged: {text}");
            continue;
        };
        let cosine = format!("{cosine:.3}");
        *wanted.entry(cosine.clone()).or_insert(0_usize) += 1;
        if let Some(into) = into {
            assert_eq!(&into, twin, "merged into the wrong one");
            *found.entry(cosine).or_insert(0_usize) += 1;
        }
    }
    println!("{planted} among {facts} in {took:.2?}: merged {found:?} of {wanted:?}");
    if let Some(bare) = bare {
        let ratio = took.as_secs_f64() / bare.as_secs_f64();
        println!("{ratio:.2} of bare ({bare:.2?})");
        assert!(ratio <= 1.3, "{ratio:.2} times as long as the bare search and rescoring");
    }
    for (cosine, wanted) in wanted {
        let found = found.get(&cosine).copied().unwrap_or(0);
        match cosine.as_str() {
            "0.930" | "0.939" => assert_eq!(found, 0, "merged below the threshold"),
            "0.941" => assert!(found * 10 >= wanted * 9, "{found} of {wanted} at {cosine}"),
            _ => assert!(found * 100 >= wanted * 99, "{found} of {wanted} at {cosine}"),
        }
    }
}

/// What the search alone takes: the same queries in the same batches, each hit scored once more from its vector.
async fn bare(fixture: &PlantedFacts, all: &[Said]) -> Duration {
    let begun = Instant::now();
    for batch in all.chunks(256) {
        let queries: Vec<Vec<f32>> = batch.iter().map(|said| said.vector.clone()).collect();
        let near = fixture
            .vectors
            .store()
            .nearest(&fixture.tenant(), &fixture.space, &queries, 16, 0.94)
            .await
            .unwrap();
        let ids: Vec<uuid::Uuid> = near.iter().flatten().map(|near| near.id).collect();
        let points = fixture.vectors.store().find(&fixture.tenant(), &fixture.space, &ids).await.unwrap();
        let points: HashMap<uuid::Uuid, Vec<f32>> =
            points.into_iter().map(|point| (point.id, point.vector)).collect();
        for (query, near) in queries.iter().zip(near) {
            for near in near {
                assert!((dot(query, &points[&near.id]) - f64::from(near.cosine)).abs() < 1e-4);
            }
        }
    }
    begun.elapsed()
}
