//! Taking a merge back puts everything where it was.

use okt_store::fact_merges;

use crate::dedup::planted_facts::{Dice, PlantedFacts, said};

/// Facts, their sources and sentences, and their concepts, as they are in the database.
async fn rows(fixture: &PlantedFacts) -> Vec<String> {
    let query =
        "SELECT f.id || ' ' || f.no || ' ' || f.text || ' ' || f.status || ' ' || f.source_count || ' '
                        || coalesce(f.merged_into::text, '-') FROM okt_repository.facts f
                  UNION ALL SELECT 'source ' || l::text FROM okt_repository.fact_sources l
                  UNION ALL SELECT 'concept ' || c::text FROM okt_repository.fact_concepts c
                  ORDER BY 1";
    sqlx::query_scalar(query).fetch_all(&mut fixture.connect().await).await.unwrap()
}

/// Three that say the same, one after the other, each from a source of its own and with a concept.
async fn three() -> (PlantedFacts, [&'static str; 3]) {
    let texts = [
        "The river Aare flows through the city of Bern.",
        "In the city of Bern flows the river Aare.",
        "The Aare river flows through the city of Bern.",
    ];
    let fixture = PlantedFacts::open().await;
    let mut dice = Dice(5);
    let vector = dice.vector();
    for (at, text) in texts.iter().enumerate() {
        let source = fixture.source().await;
        let near = if at == 0 { vector.clone() } else { dice.beside(&vector, 0.97) };
        fixture.say_as(source, &[said(text, near)], okt_model::FactStatus::Stable).await;
    }
    let concepts = "INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
                    SELECT repository_id, 40 + row_number() OVER (ORDER BY no), no FROM okt_repository.facts";
    sqlx::query(concepts).execute(&mut fixture.connect().await).await.unwrap();
    (fixture, texts)
}

/// One after the other, each into the fact behind it.
async fn merge(fixture: &PlantedFacts, merges: &[(&str, &str)]) {
    for (fact, into) in merges {
        fixture.merge(fact, into).await;
        fixture.check().await;
    }
}

async fn undo(fixture: &PlantedFacts, text: &str) {
    let id = fixture.id_of(text).await;
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    assert!(fact_merges::undo(&mut tx, fixture.repository, id, None).await.unwrap().is_some());
    tx.commit().await.unwrap();
    fixture.check().await;
}

#[tokio::test]
async fn undoing_restores_facts_sources_sentences_and_concepts_exactly() {
    let (fixture, texts) = three().await;
    let before = rows(&fixture).await;
    merge(&fixture, &[(texts[1], texts[0]), (texts[2], texts[0])]).await;
    let merged = rows(&fixture).await;
    assert_eq!(merged.iter().filter(|row| row.contains(" duplicate ")).count(), 2, "{merged:#?}");
    undo(&fixture, texts[1]).await;
    undo(&fixture, texts[2]).await;
    assert_eq!(rows(&fixture).await, before);
}

#[tokio::test]
async fn what_was_merged_in_steps_comes_apart_in_steps() {
    let (fixture, texts) = three().await;
    let before = rows(&fixture).await;
    merge(&fixture, &[(texts[2], texts[1]), (texts[1], texts[0])]).await;
    let standing = |rows: &[(String, String, Option<String>)]| -> Vec<Option<String>> {
        rows.iter().map(|(_, _, into)| into.clone()).collect()
    };
    let first = Some(texts[0].to_owned());
    assert_eq!(
        standing(&fixture.statuses().await),
        [None, first.clone(), first],
        "no fact is merged into a duplicate"
    );
    undo(&fixture, texts[1]).await;
    assert_eq!(
        standing(&fixture.statuses().await),
        [None, None, Some(texts[1].to_owned())],
        "it took along what was its own"
    );
    undo(&fixture, texts[2]).await;
    assert_eq!(rows(&fixture).await, before);
    let id = fixture.id_of(texts[2]).await;
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    assert_eq!(fact_merges::undo(&mut tx, fixture.repository, id, None).await.unwrap(), None, "only once");
}
