//! `okt dedup recheck`: merges of before that would not be made now.

use std::process::Command;

use okt_config::DedupPolicy;
use okt_jobs::recheck::{Rechecked, RefusedBecause, recheck};
use okt_model::{EMBEDDING_MODEL, JobId, MergedBy};
use okt_store::fact_merges::{self, Merge};
use okt_testkit::jobs::program;
use okt_testkit::wait::eventually;

use crate::dedup::stored_facts::StoredFacts;

const BRIBED: [&str; 2] = ["The mayor bribed the clerk.", "The mayor allegedly bribed the clerk."];
const OPENED: [&str; 2] = ["The centre opened on 5 May 2021.", "The center opened on May 5, 2021."];
const BRIDGE: [&str; 2] = ["A bridge spans the river in Bern.", "In Bern a bridge spans the river."];

/// A merge of before, whatever the texts say.
async fn merge(fixture: &StoredFacts, pair: [&str; 2], by: MergedBy) {
    for text in pair {
        fixture.say(&[text.to_owned()]).await;
    }
    let (into, fact) = (number(fixture, pair[0]).await.0, number(fixture, pair[1]).await.0);
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let merge = Merge { fact, into, cosine: 0.97, by };
    fact_merges::merge(&mut tx, fixture.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn number(fixture: &StoredFacts, text: &str) -> (i64, uuid::Uuid, String, Option<i64>) {
    let query = "SELECT no, id, status, merged_into FROM okt_repository.facts WHERE text = $1";
    let mut conn = fixture.service.database.connect().await;
    sqlx::query_as(query).bind(text).fetch_one(&mut conn).await.unwrap()
}

fn okt(fixture: &StoredFacts, arguments: &[&str]) -> (i32, String) {
    let settings = fixture.process_settings();
    let done = Command::new(program())
        .args(["dedup", "recheck"])
        .args(arguments)
        .env_clear()
        .envs(std::env::var("PATH").map(|path| ("PATH", path)))
        .envs(settings)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_that_the_policy_in_force_would_not_make_are_shown_and_undone() {
    let mut fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let pairs = [BRIBED, OPENED, BRIDGE];
    for pair in pairs {
        merge(&fixture, pair, MergedBy::Cosine).await;
    }
    let (code, said) = okt(&fixture, &[]);
    assert_eq!(code, 1, "{said}");
    for wanted in [BRIBED[0], BRIBED[1], "they differ: certainty", BRIDGE[1], "no rule permits it"] {
        assert!(said.contains(wanted), "{wanted} is missing: {said}");
    }
    assert!(!said.contains(OPENED[1]), "{said}");
    assert!(said.contains("3 merges: the policy in force (rule) would not make 2"), "{said}");
    assert_eq!(number(&fixture, BRIBED[1]).await.2, "duplicate", "it was only looked at");

    let (code, said) = okt(&fixture, &["--repository", "no-such-place"]);
    assert!(code == 1 && said.contains("there is no repository"), "{said}");
    let repository = fixture.repository.to_string();
    let (code, said) = okt(&fixture, &["--apply", "--repository", &repository]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("undid 2"), "{said}");
    let audit = "SELECT count(*) FROM okt_repository.audit_outbox
                  WHERE action = 'fact.merge_undone' AND actor_kind = 'service' AND request_id = 'okt dedup recheck'";
    assert_eq!(fixture.count(audit).await, 2, "each is in the audit");
    assert_eq!(number(&fixture, OPENED[1]).await.2, "duplicate", "this one is as it should be");
    let (code, said) = okt(&fixture, &[]);
    assert!(code == 0 && said.contains("would make all of them"), "{said}");

    // They are compared again, and what is alike is grouped.
    fixture.work().await;
    eventually(std::time::Duration::from_mins(2), "they are compared again", async || {
        let (_, _, status, into) = number(&fixture, BRIDGE[1]).await;
        if status == "stable" && into.is_none() { Ok(()) } else { Err(status) }
    })
    .await;
    for text in [BRIBED[1], BRIDGE[1]] {
        assert_eq!(number(&fixture, text).await.3, None, "{text}");
    }
}

/// What the policy in force says of the merges.
async fn rechecked(fixture: &StoredFacts, policy: DedupPolicy) -> (Rechecked, Vec<(String, RefusedBecause)>) {
    let mut config = fixture.service.api.app.config().clone();
    config.providers.dedup.policy = policy;
    let tools = okt_testkit::jobs::tools(&config, &fixture.databases).await;
    let (mut last, mut refused) = (Rechecked::default(), Vec::new());
    let away = recheck(&fixture.databases, &tools, Some(fixture.repository), false, |_, done, found| {
        last = done;
        refused.extend(found.iter().map(|merge| (merge.text.clone(), merge.reason)));
    });
    assert!(away.await.unwrap().is_empty());
    (last, refused)
}

#[tokio::test]
async fn what_a_model_confirmed_stays_under_the_policy_that_asks_it_unless_it_differs() {
    let fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    merge(&fixture, BRIDGE, MergedBy::Judge).await;
    merge(&fixture, BRIBED, MergedBy::Judge).await;
    let unconfirmed = ["A tower stands in Bern.", "In Bern stands a tower."];
    merge(&fixture, unconfirmed, MergedBy::Cosine).await;
    let differs = (BRIBED[1].to_owned(), RefusedBecause::Differ(okt_model::Difference::Certainty));
    let not_permitted = |pair: [&str; 2]| (pair[1].to_owned(), RefusedBecause::NotPermitted);
    let (_, refused) = rechecked(&fixture, DedupPolicy::Judge).await;
    assert_eq!(refused, [differs.clone(), not_permitted(unconfirmed)]);
    let (done, refused) = rechecked(&fixture, DedupPolicy::Rule).await;
    assert_eq!(refused, [not_permitted(BRIDGE), differs.clone(), not_permitted(unconfirmed)]);
    assert_eq!((done.merges, done.incomplete), (3, 0));
    let (_, refused) = rechecked(&fixture, DedupPolicy::Cosine).await;
    assert_eq!(refused, [differs]);

    // No program of ours leaves such a journal.
    fixture.sql("UPDATE okt_repository.fact_merges SET into_no = 1000000 WHERE merged_by = 'cosine'").await;
    let (done, _) = rechecked(&fixture, DedupPolicy::Rule).await;
    assert_eq!((done.merges, done.incomplete), (2, 1), "what can't be compared is counted");
    let (_, said) = okt(&fixture, &[]);
    assert!(said.contains("1 more could not be checked"), "{said}");
}
