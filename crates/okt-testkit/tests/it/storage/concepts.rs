//! Concepts by name and alias, in lists, merged and taken apart again.

use okt_model::{
    Alias, AliasBy, ConceptFilter, ConceptId, ConceptMergedBy, FactFilter, FactStatus, FoundBy, NewConcept,
    NewConceptMerge, RelationBands, RepositoryId, Strength,
};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concept_readings::{self, ReadingState};
use okt_store::concept_relations::{self, Folded};
use okt_store::concepts::{self, ConceptPlace, NewLink};
use okt_store::contexts::{self, NewContext};
use okt_store::{Connection, Databases, Purpose, concept_merges, facts};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::db::TestDatabase;
use okt_testkit::facts::{forget_source, insert_source, new_fact, replace_facts};

pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    databases: Databases,
    pub(crate) repository: RepositoryId,
}

impl Fixture {
    /// With three contexts.
    pub(crate) async fn open() -> Self {
        let database = TestDatabase::migrated().await;
        let databases = Databases::open(&database.config(&[]), &[Purpose::Api]).await.unwrap().remove(0);
        let fixture = Self { database, databases, repository: RepositoryId::mint() };
        let mut tx = fixture.begin().await;
        let new = [("Animal", Some("dbo:Animal")), ("Disease", None), ("Concept", None)];
        let new = new.map(|(label, class)| NewContext {
            label: label.to_owned(),
            description: String::new(),
            ontology_class: class.map(str::to_owned),
        });
        contexts::insert(&mut tx, fixture.repository, &new).await.unwrap();
        tx.commit().await.unwrap();
        fixture
    }

    pub(crate) async fn begin(&self) -> okt_store::Tx {
        self.databases.begin("default", self.repository).await.unwrap()
    }

    /// The numbers of so many facts of one source.
    async fn facts(&self, count: usize) -> Vec<i64> {
        let source = insert_source(&self.databases, self.repository).await;
        let new: Vec<_> = (0..count).map(|at| new_fact(&format!("Fact {at} of {source}."))).collect();
        replace_facts(&self.databases, self.repository, source, &new, FactStatus::Stable).await;
        sqlx::query_scalar(
            "SELECT f.no FROM okt_repository.facts f
               JOIN okt_repository.fact_sources l ON l.fact_no = f.no
               JOIN okt_repository.sources s ON s.no = l.source_no AND s.id = $1 ORDER BY f.no",
        )
        .bind(source.uuid())
        .fetch_all(&mut self.database.connect().await)
        .await
        .unwrap()
    }

    async fn merge(&self, conn: &mut Connection, concept: ConceptId, into: ConceptId) -> Option<i64> {
        let by = ConceptMergedBy::Rule;
        let merge = NewConceptMerge { concept, into, by, job: None, person: None, reason: None };
        concept_merges::insert(conn, self.repository, &merge).await.unwrap()
    }

    async fn fold(&self, conn: &mut Connection) {
        while concept_relations::fold(conn, self.repository, 100).await.unwrap() != Folded::default() {}
    }
}

fn alias(concept: ConceptId, text: &str, by: AliasBy) -> NewAlias {
    NewAlias { concept, text: text.to_owned(), by }
}

#[tokio::test]
async fn a_concept_is_found_by_its_name_then_by_an_alias_and_else_made() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let mut tx = fixture.begin().await;
    let dna = file_concept(&mut tx, repository, "Deoxyribonucleic acid", "Concept").await.unwrap();
    let aliases = [alias(dna, "DNA", AliasBy::Builtin), alias(dna, "deoxyribonucleic  ACID", AliasBy::Model)];
    assert_eq!(
        concept_aliases::insert(&mut tx, repository, &aliases).await.unwrap(),
        1,
        "its name is no alias"
    );
    assert_eq!(concept_aliases::insert(&mut tx, repository, &aliases).await.unwrap(), 0);

    let names = [
        ("deoxyribonucleic ACID", "concept"),
        (" dna ", "CONCEPT"),
        ("DNA", "Animal"),
        ("RNA", "Concept"),
        ("DNA", "Nothing"),
    ];
    let found = concepts::find(&mut tx, repository, &names).await.unwrap();
    assert_eq!(found, [Some(dna), Some(dna), None, None, None], "an alias holds in its context");

    // In one batch: what is there, a new one in two spellings, and the same name elsewhere.
    let new = [("dna", "Concept"), ("RNA", "Concept"), ("rna", "concept"), ("RNA", "Animal")]
        .map(|(name, context)| NewConcept::new(name, context));
    let filed = concepts::file(&mut tx, repository, &new).await.unwrap();
    filed.count(&mut tx, repository).await.unwrap();
    let filed = filed.concepts;
    assert_eq!((filed[0], filed[1]), (dna, filed[2]));
    assert_ne!(filed[1], filed[3]);
    let rna = concepts::get(&mut tx, repository, filed[1]).await.unwrap().unwrap();
    assert_eq!((rna.canonical_name.as_str(), rna.context.as_str()), ("RNA", "Concept"));
    let animal = concepts::get(&mut tx, repository, filed[3]).await.unwrap().unwrap();
    assert_eq!(animal.context, "Animal");
    assert_eq!(animal.ontology_class.as_deref(), Some("dbo:Animal"));
    assert_eq!(
        contexts::find(&mut tx, repository, "Concept").await.unwrap().unwrap().context.concept_count,
        2
    );

    // A concept of that name comes before one of that alias, from then on.
    let other = file_concept(&mut tx, repository, "mRNA", "Concept").await.unwrap();
    concept_aliases::insert(&mut tx, repository, &[alias(other, "RNA", AliasBy::Model)]).await.unwrap();
    let found = concepts::find(&mut tx, repository, &[("rna", "Concept"), ("RNA", "Disease")]).await.unwrap();
    assert_eq!(found, [Some(rna.id), None]);
    let missing = concepts::file(&mut tx, repository, &[NewConcept::new("x", "Nothing")]).await;
    assert_eq!(missing.unwrap_err().to_string(), "context not found");
}

#[tokio::test]
async fn names_and_aliases_of_merged_concepts_lead_on_and_come_back() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let numbers = fixture.facts(3).await;
    let mut tx = fixture.begin().await;
    let mut made = Vec::new();
    for (name, fact) in ["Varroa mite", "Varroa", "Varroa destructor"].into_iter().zip(&numbers) {
        let concept = file_concept(&mut tx, repository, name, "Animal").await.unwrap();
        link_facts(&mut tx, repository, concept, &[*fact]).await.unwrap();
        made.push(concept);
    }
    let [mite, varroa, destructor] = made[..] else { panic!("three") };
    let aliases = [alias(varroa, "V. jacobsoni", AliasBy::Model), alias(mite, "Varroa", AliasBy::Builtin)];
    concept_aliases::insert(&mut tx, repository, &aliases).await.unwrap();
    let first = fixture.merge(&mut tx, varroa, mite).await.unwrap();
    let second = fixture.merge(&mut tx, mite, destructor).await.unwrap();
    assert_eq!(fixture.merge(&mut tx, destructor, varroa).await, None, "they are one already");

    let names = [("VARROA", "Animal"), ("v. jacobsoni", "Animal"), ("Varroa mite", "Animal")];
    assert_eq!(concepts::find(&mut tx, repository, &names).await.unwrap(), [Some(destructor); 3]);
    assert_eq!(concepts::get(&mut tx, repository, varroa).await.unwrap().unwrap().id, destructor);
    fixture.fold(&mut tx).await;
    let root = concepts::get(&mut tx, repository, destructor).await.unwrap().unwrap();
    assert_eq!(root.fact_count, 3);
    let shown = concept_aliases::list(&mut tx, repository, root.no, 10).await.unwrap();
    let shown: Vec<(&str, Option<AliasBy>)> =
        shown.iter().map(|Alias { text, by }| (text.as_str(), *by)).collect();
    let expected =
        [("V. jacobsoni", Some(AliasBy::Model)), ("Varroa", Some(AliasBy::Builtin)), ("Varroa mite", None)];
    assert_eq!(shown, expected);
    let filter = FactFilter { concepts: vec![varroa, destructor], ..FactFilter::default() };
    assert_eq!(facts::list(&mut tx, repository, &filter, false, None, 10).await.unwrap().len(), 3);
    let listed = facts::list_concepts(&mut tx, repository, &numbers).await.unwrap();
    assert_eq!(listed.iter().map(|concept| concept.id).collect::<Vec<_>>(), [destructor]);

    // The first merge is undone before the second one: each is exact.
    assert_eq!(concept_merges::undo(&mut tx, repository, first, None).await.unwrap(), Some(varroa));
    assert_eq!(concept_merges::undo(&mut tx, repository, first, None).await.unwrap(), None, "only once");
    let found = concepts::find(&mut tx, repository, &names).await.unwrap();
    assert_eq!(found, [Some(varroa), Some(varroa), Some(destructor)]);
    assert_eq!(concept_merges::undo(&mut tx, repository, second, None).await.unwrap(), Some(mite));
    fixture.fold(&mut tx).await;
    for concept in made {
        assert_eq!(concepts::get(&mut tx, repository, concept).await.unwrap().unwrap().fact_count, 1);
    }
    assert_eq!(
        contexts::find(&mut tx, repository, "Animal").await.unwrap().unwrap().context.concept_count,
        3
    );
}

#[tokio::test]
async fn a_merge_is_not_undone_where_the_name_was_taken_meanwhile() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let mut tx = fixture.begin().await;
    let one = file_concept(&mut tx, repository, "Bee", "Animal").await.unwrap();
    let other = file_concept(&mut tx, repository, "Honey bee", "Animal").await.unwrap();
    let merge = fixture.merge(&mut tx, one, other).await.unwrap();
    // Whoever files it is led on; only a renamed concept can take the name.
    assert_eq!(file_concept(&mut tx, repository, "bee", "Animal").await.unwrap(), other);
    assert!(concepts::update(&mut tx, repository, other, Some("Bee"), None).await.unwrap());
    let refused = concept_merges::undo(&mut tx, repository, merge, None).await.unwrap_err();
    assert_eq!(refused.to_string(), "a concept of this name in this context already exists");
}

#[tokio::test]
async fn a_concept_gets_another_name_or_context_where_that_is_free() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let mut tx = fixture.begin().await;
    let bee = file_concept(&mut tx, repository, "Bee", "Animal").await.unwrap();
    let wasp = file_concept(&mut tx, repository, "Wasp", "Disease").await.unwrap();
    let disease = contexts::find(&mut tx, repository, "Disease").await.unwrap().unwrap().no;
    assert!(concepts::update(&mut tx, repository, bee, Some("BEE"), None).await.unwrap());
    assert!(concepts::update(&mut tx, repository, bee, Some("Wasp"), None).await.unwrap(), "another context");
    let taken = concepts::update(&mut tx, repository, bee, None, Some(disease)).await.unwrap_err();
    assert_eq!(taken.to_string(), "a concept of this name in this context already exists");
    assert!(concepts::update(&mut tx, repository, bee, Some("Bee"), Some(disease)).await.unwrap());
    let nowhere = concepts::update(&mut tx, repository, bee, None, Some(disease + 1_000)).await.unwrap_err();
    assert_eq!(nowhere.to_string(), "context not found");
    assert!(!concepts::update(&mut tx, repository, ConceptId::mint(), Some("x"), None).await.unwrap());
    let names = [("bee", "Disease"), ("WASP", "Disease"), ("bee", "Animal")];
    assert_eq!(concepts::find(&mut tx, repository, &names).await.unwrap(), [Some(bee), Some(wasp), None]);
    let counts = contexts::list(&mut tx, repository).await.unwrap();
    assert_eq!(counts.iter().map(|context| context.concept_count).collect::<Vec<_>>(), [0, 0, 2]);
}

#[tokio::test]
async fn a_link_keeps_the_more_trusted_finding_and_can_be_taken_away_and_moved() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let numbers = fixture.facts(2).await;
    let mut tx = fixture.begin().await;
    let bee = file_concept(&mut tx, repository, "Bee", "Animal").await.unwrap();
    let wasp = file_concept(&mut tx, repository, "Wasp", "Animal").await.unwrap();
    for (found_by, new) in
        [(FoundBy::Title, 1), (FoundBy::Phrase, 0), (FoundBy::Name, 0), (FoundBy::Title, 0)]
    {
        let link = NewLink { concept: bee, fact: numbers[0], found_by };
        assert_eq!(concepts::link(&mut tx, repository, &[link]).await.unwrap(), new, "{found_by:?}");
    }
    let found_by: Vec<i16> = sqlx::query_scalar("SELECT found_by FROM okt_repository.fact_concepts")
        .fetch_all(&mut *tx)
        .await
        .unwrap();
    assert_eq!(found_by, [FoundBy::Name.number()]);
    let unknown = NewLink { concept: ConceptId::mint(), fact: numbers[0], found_by: FoundBy::Name };
    assert!(concepts::link(&mut tx, repository, &[unknown]).await.is_err());

    assert_eq!(concepts::relink(&mut tx, repository, bee, wasp, &numbers).await.unwrap(), 1);
    assert_eq!(concepts::unlink(&mut tx, repository, bee, &numbers).await.unwrap(), [0; 0]);
    assert_eq!(concepts::unlink(&mut tx, repository, wasp, &numbers).await.unwrap(), [numbers[0]]);
    assert!(concept_relations::count_changes(&mut tx, repository, 100).await.unwrap() >= 3);
}

#[tokio::test]
async fn lists_page_by_facts_and_by_name() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let numbers = fixture.facts(12).await;
    let mut tx = fixture.begin().await;
    let names = ["Apis", "Apis cerana", "Bombus", "Honey bee", "Vespa", "bee louse"];
    for (at, name) in names.iter().enumerate() {
        let context = if at % 2 == 0 { "Animal" } else { "Concept" };
        let concept = file_concept(&mut tx, repository, name, context).await.unwrap();
        link_facts(&mut tx, repository, concept, &numbers[..2 * at]).await.unwrap();
    }
    fixture.fold(&mut tx).await;
    let animal = contexts::find(&mut tx, repository, "Animal").await.unwrap().unwrap().no;
    let none = ConceptFilter::default;
    let by_facts = ConceptPlace::MOST_FACTS;
    let by_name = ConceptPlace::first_name();
    let backwards: Vec<&str> = names.into_iter().rev().collect();
    for (filter, start, expected) in [
        (none(), &by_facts, backwards.clone()),
        (ConceptFilter { min_fact_count: 5, ..none() }, &by_facts, backwards[..3].to_vec()),
        (ConceptFilter { context_no: Some(animal), ..none() }, &by_facts, vec!["Vespa", "Bombus", "Apis"]),
        (ConceptFilter { q: Some("BEE".to_owned()), ..none() }, &by_facts, vec!["bee louse", "Honey bee"]),
        (ConceptFilter { q: Some("apis".to_owned()), ..none() }, &by_facts, vec!["Apis cerana", "Apis"]),
        (none(), &by_name, vec!["Apis", "Apis cerana", "bee louse", "Bombus", "Honey bee", "Vespa"]),
        (
            ConceptFilter { q: Some("B".to_owned()), ..none() },
            &by_name,
            vec!["bee louse", "Bombus", "Honey bee"],
        ),
        (ConceptFilter { context_no: Some(animal), ..none() }, &by_name, vec!["Apis", "Bombus", "Vespa"]),
        (ConceptFilter { min_fact_count: 7, ..none() }, &by_name, vec!["bee louse", "Vespa"]),
    ] {
        for size in [1, 2, 50] {
            let (mut after, mut found) = (start.clone(), Vec::new());
            loop {
                let page = concepts::list(&mut tx, repository, &filter, &after, size).await.unwrap();
                let Some(last) = page.last() else { break };
                after = after.of(last);
                found.extend(page.into_iter().map(|concept| concept.canonical_name));
            }
            assert_eq!(found, expected, "{filter:?} {start:?} {size}");
        }
    }
}

/// Few are found by their words and put in order, many by walking along the list: both find the same.
#[tokio::test]
async fn what_few_and_what_many_words_begin_with_is_found_alike() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let numbers = fixture.facts(7).await;
    let mut tx = fixture.begin().await;
    let names =
        ["Zeta-bee", "zeta (wasp)", "Zetabee", "New/zeta", "A \"zeta\" b", "a,zeta:b", "[zeta];c.zeta"];
    for (at, name) in names.iter().enumerate() {
        let concept = file_concept(&mut tx, repository, name, "Animal").await.unwrap();
        link_facts(&mut tx, repository, concept, &numbers[..=at]).await.unwrap();
    }
    fixture.fold(&mut tx).await;
    tx.commit().await.unwrap();
    let mut found = Vec::new();
    for _ in 0..2 {
        let mut tx = fixture.begin().await;
        for q in ["zeta", "Zeta-", "b", "wasp)", "new/z", "c", "a \"zet"] {
            for start in [ConceptPlace::MOST_FACTS, ConceptPlace::first_name()] {
                // Those that make it many have no facts.
                let filter =
                    ConceptFilter { q: Some(q.to_owned()), min_fact_count: 1, ..ConceptFilter::default() };
                let page = concepts::list(&mut tx, repository, &filter, &start, 50).await.unwrap();
                let listed: Vec<String> = page.into_iter().map(|concept| concept.canonical_name).collect();
                let by_name = matches!(start, ConceptPlace::Name(..));
                assert!(by_name || !listed.is_empty(), "{q}");
                found.push((q, by_name, listed));
            }
        }
        tx.commit().await.unwrap();
        let id = repository.uuid();
        let many = format!(
            "INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
             SELECT '{id}', w || n, -n FROM unnest(ARRAY['zeta', 'zeta ', 'b', 'wasp', 'new z', 'c', 'a  zet']) AS w,
                    generate_series(1, 4500) AS n
             ON CONFLICT DO NOTHING"
        );
        okt_testkit::db::run(&mut fixture.database.connect().await, &many).await;
    }
    let (few, many) = found.split_at(found.len() / 2);
    for ((q, by_name, few), (.., many)) in few.iter().zip(many) {
        let begins = |name: &&String| okt_model::name_key(name).starts_with(&okt_model::name_key(q));
        let expected = few.iter().filter(|name| !by_name || begins(name));
        assert_eq!(many.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{q} {by_name}");
    }
    let zeta = few.iter().find(|(q, by_name, _)| *q == "zeta" && !by_name).unwrap();
    assert_eq!(zeta.2.len(), names.len(), "{zeta:?}");
}

#[tokio::test]
async fn relations_are_in_bands_and_facts_of_a_concept_are_there_once() {
    let fixture = Fixture::open().await;
    let repository = fixture.repository;
    let numbers = fixture.facts(10).await;
    let mut tx = fixture.begin().await;
    let hub = file_concept(&mut tx, repository, "Hub", "Animal").await.unwrap();
    link_facts(&mut tx, repository, hub, &numbers).await.unwrap();
    for (name, shared) in [("six", 6), ("three", 3), ("two", 2), ("one", 1), ("uno", 1), ("none", 0)] {
        let concept = file_concept(&mut tx, repository, name, "Concept").await.unwrap();
        link_facts(&mut tx, repository, concept, &numbers[..shared]).await.unwrap();
    }
    fixture.fold(&mut tx).await;
    let no = concepts::get(&mut tx, repository, hub).await.unwrap().unwrap().no;
    let bands = RelationBands { weak: 3, stable: 6 };
    let mut names = Vec::new();
    for (floors, size) in [((1, 0), 1), ((1, 0), 2), ((1, 0), 50), ((3, 0), 2), ((1, 2), 50), ((2, 0), 1)] {
        let (mut after, mut found) = (concept_relations::STRONGEST, Vec::new());
        loop {
            let page =
                concept_relations::list(&mut tx, repository, no, bands, floors, after, size).await.unwrap();
            let Some(last) = page.last() else { break };
            after = (last.shared_fact_count, last.no);
            found.extend(
                page.into_iter().map(|one| (one.canonical_name, one.shared_fact_count, one.strength)),
            );
        }
        names.push(found.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>().join(" "));
        if floors == (1, 0) {
            let strengths: Vec<Strength> = found.iter().map(|(.., strength)| *strength).collect();
            let (weak, insignificant) = (Strength::Weak, Strength::Insignificant);
            assert_eq!(strengths, [Strength::Stable, weak, insignificant, insignificant, insignificant]);
        }
    }
    let all = "six three two uno one";
    assert_eq!(names, [all, all, all, "six three", "six three two", "six three two"]);

    // Merged with one whose facts it has, and with a duplicate among its facts: each fact once, and none is passed over.
    let six = file_concept(&mut tx, repository, "six", "Concept").await.unwrap();
    fixture.merge(&mut tx, six, hub).await.unwrap();
    let merge = okt_store::fact_merges::Merge {
        fact: numbers[9],
        into: numbers[0],
        cosine: 0.99,
        by: okt_model::MergedBy::Rule,
    };
    okt_store::fact_merges::hold(&mut tx, repository, &[numbers[0], numbers[9]]).await.unwrap();
    okt_store::fact_merges::merge(&mut tx, repository, &[merge], okt_model::JobId::mint()).await.unwrap();
    for size in [1, 4, 50] {
        let (mut before, mut found) = (i64::MAX, Vec::new());
        loop {
            let page = concepts::list_facts(&mut tx, repository, no, before, size).await.unwrap();
            let Some((place, _)) = page.last() else { break };
            before = *place;
            found.extend(page.into_iter().map(|(_, fact)| fact.no));
        }
        let mut expected = vec![numbers[0]];
        expected.extend(numbers[1..9].iter().rev());
        assert_eq!(found, expected, "{size}");
    }
    fixture.fold(&mut tx).await;
    assert_eq!(concepts::get(&mut tx, repository, six).await.unwrap().unwrap().fact_count, 9);
}

/// What the job of a source was going to read is read by that of another source that says it, too.
#[tokio::test]
async fn when_a_source_goes_others_read_what_it_was_going_to() {
    let fixture = Fixture::open().await;
    let (databases, repository) = (&fixture.databases, fixture.repository);
    let (first, second) =
        (insert_source(databases, repository).await, insert_source(databases, repository).await);
    let both = [new_fact("Bees sting.")];
    replace_facts(databases, repository, first, &both, FactStatus::Stable).await;
    replace_facts(databases, repository, second, &both, FactStatus::Stable).await;
    let mut tx = fixture.begin().await;
    let fact = concept_readings::list(&mut tx, repository, second, 7).await.unwrap()[0].no;
    concept_readings::plan(&mut tx, repository, first, 7, &[(fact, fact)]).await.unwrap();
    let others = concept_readings::list(&mut tx, repository, second, 7).await.unwrap();
    assert_eq!(others[0].state, ReadingState::Settled, "the first one reads it");
    tx.commit().await.unwrap();

    forget_source(databases, repository, first).await;
    let mut tx = fixture.begin().await;
    let others = concept_readings::list(&mut tx, repository, second, 7).await.unwrap();
    assert_eq!(others[0].state, ReadingState::Open);
    tx.commit().await.unwrap();
    let asked: Vec<String> = sqlx::query_scalar(
        "SELECT payload::jsonb ->> 'source' FROM okt_repository.outbox WHERE kind = 'extract_concepts'",
    )
    .fetch_all(&mut fixture.database.connect().await)
    .await
    .unwrap();
    assert_eq!(asked, [second.to_string()]);
}
