//! Each step, what a machine does after it, and its undoing.

use okt_model::{
    ConceptFilter, ConceptMergedBy, CurationAction, CurationId, Error, FactStatus, NewConceptMerge,
    RepositoryId,
};
use okt_store::concepts::{self, ConceptPlace};
use okt_store::{concept_aliases, concept_merges, contexts, curation, facts};

use crate::curation::repository::Repository;

/// Two concepts of one context with two facts each, one of them in common, and an alias each.
async fn bees() -> Repository {
    let mut repository = Repository::empty().await;
    repository.say(&["Bees dance.".to_owned(), "Bees sting.".to_owned(), "Wasps sting.".to_owned()]).await;
    repository.find("Bee", "Animal", "Bees dance.", Some("Apis"));
    repository.find("Bee", "Animal", "Bees sting.", None);
    repository.find("Wasp", "Animal", "Bees sting.", Some("Vespa"));
    repository.find("Wasp", "Animal", "Wasps sting.", None);
    assert_eq!(repository.run_machine().await, (4, 2));
    repository
}

fn merge(
    repository: &Repository,
    concept: okt_model::ConceptId,
    into: okt_model::ConceptId,
) -> NewConceptMerge {
    let by = ConceptMergedBy::Person;
    NewConceptMerge { concept, into, by, job: None, person: Some(repository.person), reason: None }
}

/// A machine that says everything once more changes nothing, and when the step is undone everything is as it was.
async fn holds_and_is_undone(repository: &Repository, before: &[String], step: CurationId) {
    let after = repository.dump().await;
    assert_ne!(after, before);
    assert_eq!(repository.run_machine().await, (0, 0));
    assert_eq!(repository.dump().await, after);
    repository.undo(step).await.unwrap();
    assert_eq!(repository.dump().await, before);
    let twice = repository.undo(step).await.unwrap_err();
    assert_eq!(twice.to_string(), "this step was undone already");
    assert_eq!(repository.run_machine().await, (0, 0));
    assert_eq!(repository.dump().await, before);
}

#[tokio::test]
async fn a_merge_holds_and_is_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let (bee, wasp) = (repository.concept("Bee", "Animal").await, repository.concept("Wasp", "Animal").await);
    let mut tx = repository.begin().await;
    let step = curation::merge(&mut tx, repository.id, &merge(&repository, wasp, bee)).await.unwrap();
    assert_eq!(
        curation::merge(&mut tx, repository.id, &merge(&repository, bee, wasp)).await.unwrap(),
        None,
        "they are one already"
    );
    tx.commit().await.unwrap();
    assert_eq!(repository.concept("Wasp", "Animal").await, bee);
    holds_and_is_undone(&repository, &before, step.unwrap()).await;

    // A person took the merge back, so no machine makes it again.
    let mut tx = repository.begin().await;
    let machine = NewConceptMerge { by: ConceptMergedBy::Judge, ..merge(&repository, bee, wasp) };
    assert_eq!(curation::merge(&mut tx, repository.id, &machine).await.unwrap(), None);
    assert!(curation::merge(&mut tx, repository.id, &merge(&repository, bee, wasp)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_split_holds_and_is_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let bee = repository.concept("Bee", "Animal").await;
    let (dance, wasps) = (repository.fact_id("Bees dance.").await, repository.fact_id("Wasps sting.").await);
    let mut tx = repository.begin().await;
    let animal = contexts::find(&mut tx, repository.id, "Animal").await.unwrap().unwrap().no;
    let decided = repository.decided();
    let refused =
        curation::split(&mut tx, repository.id, decided, bee, ("Wasp", animal), &[dance]).await.unwrap_err();
    assert!(matches!(refused.0, Error::AlreadyExists(_)), "{refused:?}");
    let refused =
        curation::split(&mut tx, repository.id, decided, bee, ("Drone", animal), &[dance, wasps]).await;
    let refused = refused.unwrap_err().0.to_string();
    assert_eq!(refused, format!("fact_ids: fact {wasps} is not linked to this concept"));
    drop(tx);
    let mut tx = repository.begin().await;
    let split = curation::split(&mut tx, repository.id, decided, bee, ("Drone", animal), &[dance])
        .await
        .unwrap()
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = repository.begin().await;
    let old = concepts::get(&mut tx, repository.id, bee).await.unwrap().unwrap();
    let new = concepts::get(&mut tx, repository.id, split.made).await.unwrap().unwrap();
    let filter = ConceptFilter { q: Some("dron".to_owned()), ..ConceptFilter::default() };
    let found =
        concepts::list(&mut tx, repository.id, &filter, &ConceptPlace::first_name(), 5).await.unwrap();
    assert_eq!(
        found.iter().map(|found| found.id).collect::<Vec<_>>(),
        [split.made],
        "it is found by its name"
    );
    let of_new = concepts::list_facts(&mut tx, repository.id, new.no, i64::MAX, 10).await.unwrap();
    assert_eq!(of_new.iter().map(|(_, fact)| fact.id).collect::<Vec<_>>(), [dance]);
    let pair = (new.no, old.no);
    let parted = concept_merges::parted(&mut tx, repository.id, &[pair, (7_777, old.no)]).await.unwrap();
    assert_eq!(parted.into_iter().collect::<Vec<_>>(), [pair]);
    let machine = NewConceptMerge { by: ConceptMergedBy::Rule, ..merge(&repository, split.made, bee) };
    assert_eq!(concept_merges::insert(&mut tx, repository.id, &machine).await.unwrap(), None);
    drop(tx);
    holds_and_is_undone(&repository, &before, split.step).await;
    let mut tx = repository.begin().await;
    assert_eq!(concepts::get(&mut tx, repository.id, split.made).await.unwrap(), None);
}

/// What was split off got a fact of its own since: when the split is undone, that is the other's.
#[tokio::test]
async fn what_a_split_off_concept_gained_is_not_lost() {
    let mut repository = bees().await;
    let bee = repository.concept("Bee", "Animal").await;
    let dance = repository.fact_id("Bees dance.").await;
    let mut tx = repository.begin().await;
    let animal = contexts::find(&mut tx, repository.id, "Animal").await.unwrap().unwrap().no;
    let split =
        curation::split(&mut tx, repository.id, repository.decided(), bee, ("Drone", animal), &[dance])
            .await
            .unwrap()
            .unwrap();
    tx.commit().await.unwrap();
    repository.say(&["Drones fly.".to_owned()]).await;
    repository.find("Drone", "Animal", "Drones fly.", Some("Male bee"));
    assert_eq!(repository.run_machine().await, (1, 1));
    repository.undo(split.step).await.unwrap();
    repository.fold().await;
    let mut tx = repository.begin().await;
    let whole = concepts::get(&mut tx, repository.id, split.made).await.unwrap().unwrap();
    assert_eq!((whole.id, whole.fact_count), (bee, 3));
    drop(tx);
    assert_eq!(repository.run_machine().await, (0, 0));
}

#[tokio::test]
async fn a_new_name_and_a_new_context_hold_and_are_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let bee = repository.concept("Bee", "Animal").await;
    let decided = repository.decided();
    let context = async |label: &str| {
        let mut tx = repository.begin().await;
        contexts::find(&mut tx, repository.id, label).await.unwrap().unwrap().no
    };
    let (animal, disease) = (context("Animal").await, context("Disease").await);
    for (name, context, action) in [
        (Some("Honey bee"), None, CurationAction::Rename),
        (None, Some(disease), CurationAction::Move),
        (Some("Bee sting"), Some(disease), CurationAction::Rename),
        // Its own name in another case.
        (Some("BEE"), Some(animal), CurationAction::Rename),
    ] {
        let mut tx = repository.begin().await;
        let step = curation::rename(&mut tx, repository.id, decided, bee, name, context).await.unwrap();
        let step = step.unwrap().unwrap();
        assert_eq!(curation::find(&mut tx, repository.id, step).await.unwrap().unwrap().action, action);
        tx.commit().await.unwrap();
        assert_eq!(repository.concept("Bee", "Animal").await, bee, "a machine that files the old name");
        holds_and_is_undone(&repository, &before, step).await;
    }
    let mut tx = repository.begin().await;
    let same = curation::rename(&mut tx, repository.id, decided, bee, Some("Bee"), Some(animal)).await;
    assert_eq!(same.unwrap(), Some(None), "nothing to do");
    let taken = curation::rename(&mut tx, repository.id, decided, bee, Some("wasp"), None).await.unwrap_err();
    assert!(matches!(taken.0, Error::AlreadyExists(_)), "{taken:?}");
}

#[tokio::test]
async fn a_former_name_leads_on_when_its_context_becomes_a_part_of_another() {
    let repository = bees().await;
    let bee = repository.concept("Bee", "Animal").await;
    let mut tx = repository.begin().await;
    curation::rename(&mut tx, repository.id, repository.decided(), bee, Some("Honey bee"), None)
        .await
        .unwrap();
    let animal = contexts::find(&mut tx, repository.id, "Animal").await.unwrap().unwrap().no;
    let concept = contexts::find(&mut tx, repository.id, "Concept").await.unwrap().unwrap().no;
    contexts::mark_merging(&mut tx, repository.id, animal, concept).await.unwrap();
    while concepts::empty(&mut tx, repository.id, animal, concept, 1).await.unwrap()
        != concepts::Emptied::default()
    {}
    assert!(contexts::delete(&mut tx, repository.id, animal).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(repository.concept("Bee", "Concept").await, bee);
}

#[tokio::test]
async fn an_alias_that_a_person_added_or_removed_stays_so_and_is_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let bee = repository.concept("Bee", "Animal").await;
    let decided = repository.decided();
    for (text, remove) in [("Apis mellifera", false), ("APIS", false), ("apis", true)] {
        let mut tx = repository.begin().await;
        let step = if remove {
            curation::remove_alias(&mut tx, repository.id, decided, bee, text).await.unwrap()
        } else {
            curation::add_alias(&mut tx, repository.id, decided, bee, text).await.unwrap()
        };
        tx.commit().await.unwrap();
        holds_and_is_undone(&repository, &before, step.unwrap()).await;
    }
    let mut tx = repository.begin().await;
    assert_eq!(curation::remove_alias(&mut tx, repository.id, decided, bee, "Vespa").await.unwrap(), None);
    curation::add_alias(&mut tx, repository.id, decided, bee, "Imme").await.unwrap().unwrap();
    let twice = curation::add_alias(&mut tx, repository.id, decided, bee, "imme").await.unwrap_err();
    assert!(matches!(twice.0, Error::AlreadyExists(_)), "{twice:?}");
    let own = curation::add_alias(&mut tx, repository.id, decided, bee, "BEE").await.unwrap_err();
    assert!(matches!(own.0, Error::Conflict(_)), "{own:?}");
    // What was taken away comes back when a person says so.
    curation::remove_alias(&mut tx, repository.id, decided, bee, "Apis").await.unwrap().unwrap();
    curation::add_alias(&mut tx, repository.id, decided, bee, "Apis").await.unwrap().unwrap();
    let no = concepts::get(&mut tx, repository.id, bee).await.unwrap().unwrap().no;
    let names: Vec<String> = concept_aliases::list(&mut tx, repository.id, no, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|alias| alias.text)
        .collect();
    assert_eq!(names, ["Apis", "Imme"]);
}

#[tokio::test]
async fn a_rejected_link_does_not_return_and_is_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let (bee, wasp) = (repository.concept("Bee", "Animal").await, repository.concept("Wasp", "Animal").await);
    let (sting, wasps) = (repository.fact_id("Bees sting.").await, repository.fact_id("Wasps sting.").await);
    let decided = repository.decided();
    let mut tx = repository.begin().await;
    assert_eq!(curation::reject_link(&mut tx, repository.id, decided, bee, wasps).await.unwrap(), None);
    let step = curation::reject_link(&mut tx, repository.id, decided, wasp, sting).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    holds_and_is_undone(&repository, &before, step).await;
}

#[tokio::test]
async fn a_rejected_fact_stays_rejected_and_is_undone() {
    let repository = bees().await;
    let before = repository.dump().await;
    let sting = repository.fact_id("Bees sting.").await;
    let decided = repository.decided();
    let mut tx = repository.begin().await;
    let step = curation::mark_fact(&mut tx, repository.id, decided, sting, true).await.unwrap().unwrap();
    assert_eq!(curation::mark_fact(&mut tx, repository.id, decided, sting, true).await.unwrap(), None);
    tx.commit().await.unwrap();
    // Once more, for it was undone in between.
    holds_and_is_undone(&repository, &before, step).await;

    let mut tx = repository.begin().await;
    curation::mark_fact(&mut tx, repository.id, decided, sting, true).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    // No source says it, and then one does again.
    let source = repository.sources[0];
    repository.say_anew(source, &["Wasps sting.".to_owned()]).await;
    assert_eq!(repository.fact("Bees sting.").await, None);
    repository.say_anew(source, &["Wasps sting.".to_owned(), "Bees sting.".to_owned()]).await;
    let (_, again) = repository.fact("Bees sting.").await.unwrap();
    assert_ne!(again, sting);
    let mut tx = repository.begin().await;
    let status = facts::find(&mut tx, repository.id, again).await.unwrap().unwrap().status;
    assert_eq!(status, FactStatus::Rejected);
    // A person who restores it is believed too.
    curation::mark_fact(&mut tx, repository.id, decided, again, false).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    repository.say_anew(source, &["Wasps sting.".to_owned()]).await;
    repository.say_anew(source, &["Bees sting.".to_owned()]).await;
    let (_, third) = repository.fact("Bees sting.").await.unwrap();
    let mut tx = repository.begin().await;
    let status = facts::find(&mut tx, repository.id, third).await.unwrap().unwrap().status;
    assert_eq!(status, FactStatus::Stable);
}

#[tokio::test]
async fn a_step_that_another_stands_on_is_undone_after_it() {
    let repository = bees().await;
    let (bee, wasp) = (repository.concept("Bee", "Animal").await, repository.concept("Wasp", "Animal").await);
    let dance = repository.fact_id("Bees dance.").await;
    let decided = repository.decided();
    let id = repository.id;
    let mut tx = repository.begin().await;
    let animal = contexts::find(&mut tx, id, "Animal").await.unwrap().unwrap().no;
    let before = repository.dump().await;
    let split =
        curation::split(&mut tx, id, decided, bee, ("Drone", animal), &[dance]).await.unwrap().unwrap();
    let renamed = curation::rename(&mut tx, id, decided, split.made, Some("Male"), None).await.unwrap();
    let renamed = renamed.unwrap().unwrap();
    // Has nothing to do with the others.
    let alias = curation::add_alias(&mut tx, id, decided, wasp, "Yellowjacket").await.unwrap().unwrap();
    let merged = curation::merge(&mut tx, id, &merge(&repository, split.made, wasp)).await.unwrap().unwrap();
    tx.commit().await.unwrap();

    let first = repository.undo(split.step).await.unwrap_err();
    assert_eq!(
        first.to_string(),
        format!("later steps stand on it; undo these first, in this order: {merged}, {renamed}")
    );
    let Error::UndoFirst(steps) = repository.undo(renamed).await.unwrap_err() else { panic!("a conflict") };
    assert_eq!(steps, [merged]);
    for step in [alias, merged, renamed, split.step] {
        repository.undo(step).await.unwrap();
    }
    assert_eq!(repository.dump().await, before);

    let mut tx = repository.begin().await;
    let all = curation::list(&mut tx, id, None, i64::MAX, 10).await.unwrap();
    assert_eq!(all.iter().map(|step| step.id).collect::<Vec<_>>(), [merged, alias, renamed, split.step]);
    assert!(all.iter().all(|step| step.undone_by == Some(repository.person)
        && step.person == Some(repository.person)
        && step.undone_at.is_some()));
    assert_eq!(all[3].reason.as_deref(), Some("why"));
    assert_eq!(all[3].details.other.as_ref().unwrap().canonical_name, "Drone");
    let page = curation::list(&mut tx, id, None, all[1].no, 1).await.unwrap();
    assert_eq!(page.iter().map(|step| step.id).collect::<Vec<_>>(), [renamed]);
    let of_bee = curation::list(&mut tx, id, Some(bee), i64::MAX, 10).await.unwrap();
    assert_eq!(of_bee.iter().map(|step| step.id).collect::<Vec<_>>(), [split.step]);
    let of_wasp = curation::list(&mut tx, id, Some(wasp), i64::MAX, 1).await.unwrap();
    assert_eq!(of_wasp.iter().map(|step| step.id).collect::<Vec<_>>(), [merged]);
    let nobody = okt_model::ConceptId::mint();
    assert!(curation::list(&mut tx, id, Some(nobody), i64::MAX, 10).await.unwrap().is_empty());
    assert_ne!(RepositoryId::mint(), id);
}
