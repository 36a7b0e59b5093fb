//! What is near, was not merged and differs in no way that has a name: a group, shown as one line.

use std::time::Duration;

use http::Method;
use okt_model::{DeduplicateFacts, FactFilter, FactStatus, SourceId, UnitKind};
use okt_store::search_units::{self, NewUnit};
use okt_store::{fact_groups, facts};
use okt_testkit::facts::insert_source;
use okt_testkit::jobs::TestWorker;
use serde_json::json;

use crate::dedup::planted_facts::{Dice, PlantedFacts, Said, said};
use crate::dedup::stored_facts::StoredFacts;

/// Five ways to say it. No rule makes one of any two, and none differs from another in a way that has a name.
fn ways(town: &str) -> [String; 5] {
    [
        format!("A bridge spans the river in {town}."),
        format!("In {town} a bridge spans the river."),
        format!("A bridge in {town} spans the river."),
        format!("A bridge spans, in {town}, the river."),
        format!("In {town} the river a bridge spans."),
    ]
}

impl PlantedFacts {
    /// As it is by default: merged is only what a rule permits.
    async fn by_rule() -> Self {
        Self::open_with(&[]).await
    }

    /// The text of each fact that is there to be seen, with that of the representative of its group.
    async fn groups(&self) -> Vec<(String, Option<String>)> {
        let query = "SELECT f.text, r.text FROM okt_repository.facts f
                       LEFT JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.similar_to
                      WHERE f.status IN ('new', 'stable') ORDER BY f.no";
        sqlx::query_as(query).fetch_all(&mut self.connect().await).await.unwrap()
    }

    /// Each text from a source of its own, in this order.
    async fn say_each(&self, facts: &[Said]) -> Vec<SourceId> {
        let mut sources = Vec::new();
        for fact in facts {
            let source = self.source().await;
            self.say(source, std::slice::from_ref(fact)).await;
            sources.push(source);
        }
        sources
    }

    async fn reject(&self, text: &str) {
        let id = self.id_of(text).await;
        let mut tx = self.databases.begin("default", self.repository).await.unwrap();
        let from = [FactStatus::New, FactStatus::Stable];
        assert!(facts::mark(&mut tx, self.repository, id, &from, FactStatus::Rejected).await.unwrap());
        tx.commit().await.unwrap();
    }
}

/// Facts that are all near the first one, which are so to each other as well.
fn around(dice: &mut Dice, texts: &[String]) -> Vec<Said> {
    let centre = dice.vector();
    let beside = |text: &String| said(text, dice.beside(&centre, 0.985));
    texts.iter().map(beside).collect()
}

fn row(text: &str, representative: Option<&str>) -> (String, Option<String>) {
    (text.to_owned(), representative.map(str::to_owned))
}

#[tokio::test]
async fn a_group_is_a_star_and_never_a_chain() {
    let mut fixture = PlantedFacts::by_rule().await;
    let mut dice = Dice(21);
    let [first, second, third, fourth, _] = ways("Oldton");
    let centre = dice.vector();
    let near = dice.beside(&centre, 0.96);
    // Near the second, and not near enough to the first.
    let beyond = dice.beside(&near, 0.96);
    let facts = [
        said(&first, centre.clone()),
        said(&second, near),
        said(&third, beyond),
        said(&fourth, dice.beside(&centre, 0.95)),
    ];
    fixture.say_each(&facts).await;
    fixture.compare().await;
    fixture.check().await;
    let one = Some(first.as_str());
    let expected = [row(&first, None), row(&second, one), row(&third, None), row(&fourth, one)];
    assert_eq!(fixture.groups().await, expected);
    assert!(fixture.statuses().await.iter().all(|(_, status, into)| status == "stable" && into.is_none()));
}

/// Two that differ may both be near a third. Whoever represents the group later, it says something alike.
#[tokio::test]
async fn what_differs_from_a_member_does_not_join() {
    let mut fixture = PlantedFacts::by_rule().await;
    let texts = [
        "Honey bees tell each other where food is by dancing on the comb.",
        "By dancing on the comb, honey bees tell each other where food is.",
        // Differs from the second, not from the first.
        "Where food is, honey bees tell each other by dancing on the comb.",
        "Honey bees do not tell each other where food is by dancing on the comb.",
    ];
    let facts = around(&mut Dice(22), &texts.map(str::to_owned));
    fixture.say_each(&facts).await;
    fixture.compare().await;
    fixture.check().await;
    let expected =
        [row(texts[0], None), row(texts[1], Some(texts[0])), row(texts[2], None), row(texts[3], None)];
    assert_eq!(fixture.groups().await, expected);
}

#[tokio::test]
async fn a_younger_fact_that_was_compared_first_joins_the_older_one() {
    let mut fixture = PlantedFacts::by_rule().await;
    let [first, second, ..] = ways("Oldton");
    let facts = around(&mut Dice(23), &[first.clone(), second.clone()]);
    let sources = fixture.say_each(&facts).await;
    fixture.work().await;
    fixture.ask(DeduplicateFacts { source: Some(sources[1]) }).await;
    let mut conn = fixture.connect().await;
    let joined = "SELECT count(*) FROM okt_repository.facts WHERE similar_to IS NOT NULL";
    okt_testkit::wait::eventually(Duration::from_mins(1), "the younger one is compared", async || {
        let new = "SELECT count(*) FROM okt_repository.facts WHERE status = 'new'";
        let new: i64 = sqlx::query_scalar(new).fetch_one(&mut conn).await.unwrap();
        if new == 1 { Ok(()) } else { Err(new) }
    })
    .await;
    let joined: i64 = sqlx::query_scalar(joined).fetch_one(&mut conn).await.unwrap();
    assert_eq!(joined, 1, "the older one is there already, and is compared later");
    fixture.compare().await;
    fixture.check().await;
    assert_eq!(fixture.groups().await, [row(&first, None), row(&second, Some(&first))]);
}

#[tokio::test]
async fn a_representative_is_found_although_sixteen_members_are_nearer() {
    let mut fixture = PlantedFacts::by_rule().await;
    let mut dice = Dice(24);
    let centre = dice.vector();
    let words = ["A bridge", "spans", "the river", "in", "Oldton"];
    // Commas in all places: what each of them says is beside the point here.
    let members: Vec<String> = (0..16_u32)
        .chain(1..12)
        .enumerate()
        .map(|(n, commas)| {
            let mut text = String::new();
            for (at, word) in words.iter().enumerate() {
                text += word;
                text += if commas >> at & 1 == 1 { ", " } else { " " };
            }
            format!("{}{}", text.trim_end(), if n < 16 { "." } else { "!" })
        })
        .collect();
    let close = dice.beside(&centre, 0.95);
    let mut planted = vec![said(&members[0], centre)];
    planted.extend(members[1..].iter().map(|text| said(text, dice.beside(&close, 0.999))));
    fixture.say_as(fixture.source().await, &planted, FactStatus::Stable).await;
    let first = fixture.number_of(&members[0]).await;
    let mut joins = Vec::new();
    for text in &members[1..] {
        joins.push((fixture.number_of(text).await, first));
    }
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    fact_groups::join(&mut tx, fixture.repository, &joins).await.unwrap();
    tx.commit().await.unwrap();
    let other = "In Oldton the river a bridge spans.";
    fixture.say(fixture.source().await, &[said(other, close)]).await;
    fixture.compare().await;
    fixture.check().await;
    let groups = fixture.groups().await;
    assert_eq!(groups.last(), Some(&row(other, Some(&members[0]))));
}

#[tokio::test]
async fn when_the_representative_goes_the_oldest_member_takes_its_place() {
    let mut fixture = PlantedFacts::by_rule().await;
    let texts = ways("Oldton");
    let facts = around(&mut Dice(25), &texts);
    let sources = fixture.say_each(&facts).await;
    fixture.compare().await;
    let [first, second, third, fourth, fifth] = texts.each_ref().map(String::as_str);
    let one = Some(first);
    let all = [row(first, None), row(second, one), row(third, one), row(fourth, one), row(fifth, one)];
    assert_eq!(fixture.groups().await, all);

    fixture.forget(sources[0]).await;
    fixture.check().await;
    let two = Some(second);
    assert_eq!(
        fixture.groups().await,
        [row(second, None), row(third, two), row(fourth, two), row(fifth, two)],
        "its source was deleted"
    );
    fixture.reject(second).await;
    fixture.check().await;
    let three = Some(third);
    assert_eq!(
        fixture.groups().await,
        [row(third, None), row(fourth, three), row(fifth, three)],
        "it was rejected"
    );
    fixture.merge(fourth, third).await;
    fixture.check().await;
    assert_eq!(fixture.groups().await, [row(third, None), row(fifth, three)], "a member was merged");
    fixture.merge(third, fifth).await;
    fixture.check().await;
    assert_eq!(fixture.groups().await, [row(fifth, None)], "nobody is left");
}

/// Several jobs compare the same facts while sources go and come again and people reject: no chain, nothing that names a fact
/// that is gone, and in the end every fact is in a group that it could be in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_compares_at_once_and_dies_leaves_no_chain() {
    const IDEAS: usize = 16;
    let fixture = PlantedFacts::by_rule().await;
    let mut dice = Dice(26);
    let mut by_way: [Vec<Said>; 5] = Default::default();
    for idea in 0..IDEAS {
        let town = format!("Old{}ton", char::from(b'a' + u8::try_from(idea).unwrap()));
        for (way, fact) in around(&mut dice, &ways(&town)).into_iter().enumerate() {
            by_way[way].push(fact);
        }
    }
    let mut sources = Vec::new();
    for facts in &by_way {
        let source = fixture.source().await;
        fixture.say(source, facts).await;
        sources.push(source);
    }
    let mut workers = vec![
        TestWorker::start(&fixture.config, Vec::new()).await,
        TestWorker::start(&fixture.config, Vec::new()).await,
    ];
    for round in 0..12 {
        for source in &sources {
            fixture.ask(DeduplicateFacts { source: Some(*source) }).await;
        }
        fixture.ask(DeduplicateFacts { source: None }).await;
        tokio::time::sleep(Duration::from_millis(40 * (round % 4))).await;
        let gone = usize::try_from(round).unwrap() % 4;
        match round % 3 {
            0 => fixture.forget(sources[gone]).await,
            1 => {
                // One of two dies with what it was about to do.
                workers.remove(0);
                workers.push(TestWorker::start(&fixture.config, Vec::new()).await);
            }
            _ => {
                let seen = fixture.groups().await;
                if let Some((text, _)) = seen.iter().find(|(_, representative)| representative.is_none()) {
                    fixture.reject(&text.clone()).await;
                }
            }
        }
        fixture.check().await;
        fixture.say(sources[gone], &by_way[gone]).await;
        fixture.check().await;
    }
    fixture.ask(DeduplicateFacts { source: None }).await;
    fixture.settled().await;
    fixture.check().await;
    let groups = fixture.groups().await;
    let alone = groups.iter().filter(|(text, representative)| {
        representative.is_none() && !groups.iter().any(|(_, other)| other.as_ref() == Some(text))
    });
    assert_eq!(alone.count(), 0, "{groups:#?}");
}

#[tokio::test]
async fn a_group_is_one_line_with_its_size_and_sources() {
    let fixture = StoredFacts::open(&[]).await;
    let [first, second, third, fourth, other] = ways("Oldton");
    let mut sources = vec![fixture.say(&[first.clone(), second.clone()]).await];
    sources.push(fixture.say(std::slice::from_ref(&third)).await);
    sources.push(fixture.say(&[fourth.clone(), other.clone()]).await);
    let rows: Vec<(i64, uuid::Uuid)> =
        sqlx::query_as("SELECT no, id FROM okt_repository.facts ORDER BY text <> $1, no")
            .bind(&first)
            .fetch_all(&mut fixture.service.database.connect().await)
            .await
            .unwrap();
    let number = async |text: &str| -> (i64, uuid::Uuid) {
        let query = "SELECT no, id FROM okt_repository.facts WHERE text = $1";
        let mut conn = fixture.service.database.connect().await;
        sqlx::query_as(query).bind(text).fetch_one(&mut conn).await.unwrap()
    };
    let (representative, id) = rows[0];
    let mut joins = Vec::new();
    for text in [&second, &third, &fourth] {
        joins.push((number(text).await.0, representative));
    }
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    fact_groups::join(&mut tx, fixture.repository, &joins).await.unwrap();
    tx.commit().await.unwrap();

    let group = json!({"id": id, "size": 4, "sources": 3});
    let member = number(&third).await.1;
    for seen in [id, member] {
        assert_eq!(fixture.get(&format!("/facts/{seen}")).await.json()["group"], group);
    }
    let alone = number(&other).await.1;
    assert_eq!(fixture.get(&format!("/facts/{alone}")).await.json()["group"], json!(null));

    // By page, one line each, and every group once.
    let texts = async |path: &str| -> Vec<String> {
        let (mut texts, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = fixture.get(&format!("{path}{cursor}")).await.json();
            for row in page["data"].as_array().unwrap_or_else(|| panic!("{page:#}")) {
                texts.push(row["text"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next_cursor"].as_str() else { return texts };
            cursor = format!("&cursor={next}");
        }
    };
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    assert_eq!(texts("/facts?limit=2").await.len(), 5, "nothing is hidden from who does not ask");
    for sort in ["newest", "source_count"] {
        let lines = texts(&format!("/facts?grouped=true&limit=1&sort={sort}")).await;
        assert_eq!(sorted(lines), sorted(vec![first.clone(), other.clone()]));
    }
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    for (text, words) in
        [(&first, ["oldton", "street"]), (&second, ["oldton", "bridg"]), (&third, ["oldton", "bridg"])]
    {
        let words = words.map(|word| (word.to_owned(), 1)).into_iter().collect();
        let unit = NewUnit { kind: UnitKind::Fact, no: number(text).await.0, sentences: None, words };
        search_units::put(&mut tx, fixture.repository, 1, &[unit], None).await.unwrap();
    }
    tx.commit().await.unwrap();
    // Where the representative is not asked for, the oldest that is represents the group.
    let spans = texts("/facts?grouped=true&limit=1&q=in%20oldton%20a%20bridge").await;
    assert_eq!(spans, std::slice::from_ref(&second));
    let of_source = texts(&format!("/facts?grouped=true&limit=1&source_id={}", sources[2])).await;
    assert_eq!(sorted(of_source), sorted(vec![fourth.clone(), other.clone()]));
    for seen in [id, member] {
        let members = texts(&format!("/facts/{seen}/group?limit=2")).await;
        assert_eq!(
            sorted(members),
            sorted(vec![first.clone(), second.clone(), third.clone(), fourth.clone()])
        );
    }
    assert_eq!(texts(&format!("/facts/{alone}/group?limit=2")).await, [other]);
    let nobody = fixture.get(&format!("/facts/{}/group", okt_model::FactId::mint().uuid())).await;
    assert_eq!(nobody.status, 404);

    let rejected = fixture.ask(Method::PUT, &format!("/facts/{id}"), &json!({"status": "rejected"})).await;
    assert_eq!((rejected.status.as_u16(), &rejected.json()["group"]), (200, &json!(null)), "{rejected:?}");
    let seen = fixture.get(&format!("/facts/{member}")).await.json();
    assert_eq!((&seen["group"]["size"], &seen["group"]["sources"]), (&json!(3), &json!(3)), "{seen:#}");
    assert_ne!(seen["group"]["id"], json!(id));
}

/// Sentences of a language that the model was not made for are near each other whatever they say.
#[tokio::test]
async fn facts_in_a_language_that_the_model_does_not_know_are_neither_merged_nor_grouped() {
    let mut fixture = PlantedFacts::by_rule().await;
    let mut dice = Dice(27);
    let german = ["In Bern überspannt eine Brücke den Fluss.", "Eine Brücke überspannt in Bern den Fluss."];
    let source = insert_source(&fixture.databases, fixture.repository).await;
    let language = "UPDATE okt_repository.sources SET language = 'de' WHERE id = $1";
    sqlx::query(language).bind(source.uuid()).execute(&mut fixture.connect().await).await.unwrap();
    fixture.say(source, &around(&mut dice, &german.map(str::to_owned))).await;
    // What the source says of its language does not fit these letters.
    let korean = ["아레강은 베른을 지나 흐른다.", "벌은 춤으로 말한다."];
    fixture.say(fixture.source().await, &around(&mut dice, &korean.map(str::to_owned))).await;
    let [first, second, ..] = ways("Oldton");
    fixture.say(fixture.source().await, &around(&mut dice, &[first.clone(), second])).await;
    fixture.compare().await;
    fixture.check().await;
    let groups = fixture.groups().await;
    let joined: Vec<_> = groups.iter().filter(|(_, representative)| representative.is_some()).collect();
    assert_eq!(joined.len(), 1, "only what is English: {groups:#?}");
    assert!(joined[0].0.contains("Oldton"), "{groups:#?}");
    assert!(fixture.statuses().await.iter().all(|(_, _, into)| into.is_none()));
    let contradictions: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_repository.fact_contradictions")
        .fetch_one(&mut fixture.connect().await)
        .await
        .unwrap();
    assert_eq!(contradictions, 0);
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let filter = FactFilter { grouped: true, ..FactFilter::default() };
    let lines = facts::list(&mut tx, fixture.repository, &filter, false, None, 10).await.unwrap();
    assert_eq!(lines.len(), 5);
}
