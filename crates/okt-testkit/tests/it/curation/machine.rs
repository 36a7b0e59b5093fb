//! A machine that reads everything anew changes nothing that a person decided.

use okt_model::{ConceptMergedBy, JobId, MergedBy, NewConceptMerge};
use okt_store::fact_merges::{self, Merge};
use okt_store::{concepts, contexts, curation};

use crate::curation::repository::Repository;

/// The texts of the facts of a concept.
async fn facts_of(repository: &Repository, name: &str, context: &str) -> Vec<String> {
    let concept = repository.concept(name, context).await;
    let mut tx = repository.begin().await;
    let no = concepts::get(&mut tx, repository.id, concept).await.unwrap().unwrap().no;
    let facts = concepts::list_facts(&mut tx, repository.id, no, i64::MAX, 50).await.unwrap();
    let mut texts: Vec<String> = facts.into_iter().map(|(_, fact)| fact.text).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn links_that_a_person_parted_stay_so_when_a_source_is_read_anew() {
    let mut repository = Repository::empty().await;
    let texts = ["Bees dance.", "Bees sting.", "Drones fly.", "Queens lay."].map(str::to_owned);
    let source = repository.say(&texts).await;
    for text in &texts {
        repository.find("Bee", "Animal", text, Some("Apis"));
    }
    repository.run_machine().await;
    let bee = repository.concept("Bee", "Animal").await;
    let (sting, drones) = (repository.fact_id("Bees sting.").await, repository.fact_id("Drones fly.").await);
    let queens = repository.fact_id("Queens lay.").await;
    let (id, decided) = (repository.id, repository.decided());
    let mut tx = repository.begin().await;
    let context = contexts::find(&mut tx, id, "Concept").await.unwrap().unwrap().no;
    curation::reject_link(&mut tx, id, decided, bee, sting).await.unwrap().unwrap();
    let split = curation::split(&mut tx, id, decided, bee, ("Drone", context), &[drones, queens]).await;
    let drone = split.unwrap().unwrap().made;
    // And once more from there.
    curation::split(&mut tx, id, decided, drone, ("Queen", context), &[queens]).await.unwrap().unwrap();
    curation::rename(&mut tx, id, decided, bee, Some("Honey bee"), Some(context)).await.unwrap();
    curation::remove_alias(&mut tx, id, decided, bee, "Apis").await.unwrap().unwrap();
    tx.commit().await.unwrap();

    repository.say_anew(source, &[]).await;
    assert_eq!(repository.fact("Bees dance.").await, None);
    repository.say_anew(source, &texts).await;
    assert_eq!(repository.run_machine().await, (3, 0), "one was rejected");
    assert_eq!(facts_of(&repository, "Honey bee", "Concept").await, ["Bees dance."]);
    assert_eq!(facts_of(&repository, "Bee", "Animal").await, ["Bees dance."]);
    assert_eq!(
        facts_of(&repository, "Drone", "Concept").await,
        ["Drones fly."],
        "what was split off keeps its fact"
    );
    assert_eq!(facts_of(&repository, "Queen", "Concept").await, ["Queens lay."]);
    repository.fold().await;
}

#[tokio::test]
async fn a_rejected_link_holds_for_whatever_concept_and_fact_become_a_part_of() {
    let mut repository = Repository::empty().await;
    let texts = ["Bees sting.", "Bees can sting.", "Bees are able to sting."].map(str::to_owned);
    repository.say(&texts).await;
    repository.find("Bee", "Animal", "Bees can sting.", None);
    repository.find("Insect", "Animal", "Bees dance.", None);
    repository.run_machine().await;
    let (bee, insect) =
        (repository.concept("Bee", "Animal").await, repository.concept("Insect", "Animal").await);
    let id = repository.id;
    let mut tx = repository.begin().await;
    let fact = repository.fact_id("Bees can sting.").await;
    curation::reject_link(&mut tx, id, repository.decided(), bee, fact).await.unwrap().unwrap();
    // The concept becomes a part of another one, and the fact a duplicate, which has another.
    let into = NewConceptMerge {
        concept: bee,
        into: insect,
        by: ConceptMergedBy::Judge,
        job: Some(JobId::mint()),
        person: None,
        reason: None,
    };
    curation::merge(&mut tx, id, &into).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    let mut numbers = Vec::new();
    for text in &texts {
        numbers.push(repository.fact(text).await.unwrap().0);
    }
    let mut tx = repository.begin().await;
    let merges = [numbers[1], numbers[2]].map(|fact| Merge {
        fact,
        into: numbers[0],
        cosine: 0.99,
        by: MergedBy::Cosine,
    });
    fact_merges::merge(&mut tx, id, &merges, JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
    for text in &texts {
        repository.find("Bee", "Animal", text, None);
        repository.find("Insect", "Animal", text, None);
    }
    assert_eq!(repository.run_machine().await, (0, 0));
    assert_eq!(facts_of(&repository, "Insect", "Animal").await, [""; 0]);
}
