//! `policy = judge`: a model confirms what vectors propose and no rule decides.

use std::time::Duration;

use okt_model::{DeduplicateFacts, SourceId};
use okt_testkit::db::FILE;
use okt_testkit::jobs::TestWorker;
use okt_testkit::llm::{Behaviour, Faults, Latency, ModelServer, Stats};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use crate::dedup::planted_facts::{Dice, PlantedFacts, said};

/// No rule makes one of any two, and none differs from another in a way that has a name.
const WAYS: [&str; 3] = [
    "A bridge spans the river in Bern.",
    "In Bern a bridge spans the river.",
    "A bridge in Bern spans the river.",
];

fn always(_: &str, _: &str) -> &'static str {
    "same"
}

struct Judged {
    fixture: PlantedFacts,
    models: ModelServer,
    dice: Dice,
}

impl Judged {
    async fn open(behaviour: Behaviour, settings: &[(&str, &str)]) -> Self {
        let models = ModelServer::start(Behaviour { keep: true, ..behaviour }).await;
        let url = models.base_url();
        let catalogue = "[[providers.ai.models]]\nid = \"sage\"\nprovider = \"local\"\n\
                         input_cost_per_1m = 1.0\noutput_cost_per_1m = 4.0\n";
        let mut all = vec![
            ("LLM_LOCAL_BASE_URL", url.as_str()),
            (FILE, catalogue),
            ("SVC__PROVIDERS__DEDUP__POLICY", "judge"),
            ("SVC__PROVIDERS__DEDUP__JUDGE_MODEL", "sage"),
            ("SVC__PROVIDERS__LLM_RETRY__BASE_DELAY", "10ms"),
            ("SVC__PROVIDERS__LLM_RETRY__MAX_DELAY", "50ms"),
            ("SVC__TASK__HEARTBEAT_INTERVAL", "200ms"),
            ("SVC__TASK__HEARTBEAT_TIMEOUT", "1s"),
        ];
        all.extend_from_slice(settings);
        Self { fixture: PlantedFacts::open_with(&all).await, models, dice: Dice(41) }
    }

    /// Texts that are all near each other, those said first nearest to the first one, each from a source of its own.
    async fn say(&mut self, texts: &[&str]) -> Vec<SourceId> {
        let centre = self.dice.vector();
        let (mut sources, mut cosine) = (Vec::new(), 1.0);
        for text in texts {
            let vector = self.dice.beside(&centre, cosine);
            cosine -= 0.015;
            let source = self.fixture.source().await;
            self.fixture.say(source, &[said(text, vector)]).await;
            sources.push(source);
        }
        sources
    }

    /// Compares all that is new, and checks what is true whatever came of it.
    async fn compare(&mut self) {
        self.fixture.compare().await;
        self.fixture.check().await;
    }

    /// The text of each fact, with that of the fact that it was merged into, and that of the representative of its group.
    async fn became(&self) -> Vec<(String, Option<String>, Option<String>)> {
        let query = "SELECT f.text, m.text, r.text FROM okt_repository.facts f
                       LEFT JOIN okt_repository.facts m ON m.repository_id = f.repository_id AND m.no = f.merged_into
                       LEFT JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.similar_to
                      ORDER BY f.no";
        sqlx::query_as(query).fetch_all(&mut self.fixture.connect().await).await.unwrap()
    }

    async fn strings(&self, query: &'static str) -> Vec<Option<String>> {
        sqlx::query_scalar(query).fetch_all(&mut self.fixture.connect().await).await.unwrap()
    }

    /// What the job says of itself, once it has ended.
    async fn output(&self) -> Value {
        let query = "SELECT output::text FROM okt_tasks.jobs
                      WHERE kind = 'deduplicate_facts' AND state = 'completed' AND output IS NOT NULL";
        eventually(Duration::from_secs(20), "the job has ended", async || {
            let said = self.strings(query).await;
            said.last().cloned().flatten().ok_or_else(|| format!("{said:?}"))
        })
        .await
        .parse()
        .unwrap()
    }

    async fn stats(&self) -> Stats {
        self.models.await_stats(|stats| stats.in_flight == 0).await
    }
}

fn merged(text: &str, into: &str) -> (String, Option<String>, Option<String>) {
    (text.to_owned(), Some(into.to_owned()), None)
}

fn grouped(text: &str, representative: &str) -> (String, Option<String>, Option<String>) {
    (text.to_owned(), None, Some(representative.to_owned()))
}

fn alone(text: &str) -> (String, Option<String>, Option<String>) {
    (text.to_owned(), None, None)
}

#[tokio::test]
async fn what_a_model_says_to_be_the_same_in_both_orders_becomes_one() {
    let mut judged = Judged::open(Behaviour { verdict: always, ..Behaviour::default() }, &[]).await;
    let sources = judged.say(&WAYS[..2]).await;
    judged.compare().await;
    assert_eq!(judged.became().await, [alone(WAYS[0]), merged(WAYS[1], WAYS[0])]);
    let asked = judged.stats().await.asked;
    let expected = [(WAYS[0], WAYS[1]), (WAYS[1], WAYS[0])].map(|(a, b)| format!("[1]\nA: {a}\nB: {b}\n\n"));
    assert_eq!(asked, expected);
    assert_eq!(
        judged.strings("SELECT merged_by FROM okt_repository.fact_merges").await,
        [Some("judge".into())]
    );
    let calls = "SELECT operation || ' ' || subject_id FROM okt_system.ai_calls";
    let call = Some(format!("fact_comparison {}", sources[0]));
    assert_eq!(judged.strings(calls).await, [call.clone(), call], "charged to the source of the new fact");
    let output = judged.output().await;
    assert_eq!(
        (&output["merged"], &output["judged"], &output["not_judged"]),
        (&json!(1), &json!(1), &json!(0))
    );
}

#[tokio::test]
async fn what_joins_a_fact_is_confirmed_with_each_of_its_duplicates() {
    // The second and the third are not the same.
    let verdict = |one: &str, other: &str| {
        if [one, other].iter().all(|text| !text.starts_with("A bridge spans")) { "different" } else { "same" }
    };
    let mut judged = Judged::open(Behaviour { verdict, ..Behaviour::default() }, &[]).await;
    judged.say(&WAYS).await;
    judged.compare().await;
    assert_eq!(
        judged.became().await,
        [alone(WAYS[0]), merged(WAYS[1], WAYS[0]), grouped(WAYS[2], WAYS[0])],
        "it is the same as one of the two only"
    );
    let stats = judged.stats().await;
    // Two pairs in both orders; then, in one order, the pair that would have to be the same as well.
    assert_eq!(stats.requests, 3, "{:?}", stats.asked);
}

#[tokio::test]
async fn what_a_model_says_in_one_order_only_stays_two() {
    let verdict = |one: &str, other: &str| if one < other { "same" } else { "different" };
    let mut judged = Judged::open(Behaviour { verdict, ..Behaviour::default() }, &[]).await;
    judged.say(&WAYS[..2]).await;
    judged.compare().await;
    assert_eq!(judged.became().await, [alone(WAYS[0]), grouped(WAYS[1], WAYS[0])]);
    let output = judged.output().await;
    assert_eq!((&output["judged"], &output["not_judged"]), (&json!(1), &json!(0)), "{output:#}");
}

#[tokio::test]
async fn an_answer_that_can_not_be_used_keeps_two_facts() {
    let garbage = Behaviour {
        verdict: always,
        faults: Faults { garbage: 1.0, ..Faults::default() },
        ..Behaviour::default()
    };
    let unknown = Behaviour { verdict: |_, _| "the same, I think", ..Behaviour::default() };
    let missing = Behaviour { verdict: |_, _| "", ..Behaviour::default() };
    for behaviour in [garbage, unknown, missing] {
        let mut judged = Judged::open(behaviour, &[]).await;
        judged.say(&WAYS[..2]).await;
        judged.compare().await;
        assert_eq!(judged.became().await, [alone(WAYS[0]), grouped(WAYS[1], WAYS[0])]);
        let output = judged.output().await;
        assert_eq!((&output["judged"], &output["not_judged"]), (&json!(0), &json!(1)), "{output:#}");
        assert!(output["not_judged_because"].as_str().unwrap().contains("could not be used"), "{output:#}");
        assert_eq!(judged.stats().await.requests, 2, "it was told once what is wrong");
    }
}

/// The rule decides what it can, and what it refuses no model can permit.
#[tokio::test]
async fn a_model_is_not_asked_about_what_differs_nor_about_what_a_rule_permits() {
    let mut judged = Judged::open(Behaviour { verdict: always, ..Behaviour::default() }, &[]).await;
    let differ = [
        ["The bridge in Bern has 5 arches.", "The bridge in Bern has 6 arches."],
        ["The mayor bribed the clerk.", "The mayor allegedly bribed the clerk."],
        ["The city council approved the plan.", "The city council did not approve the plan."],
        ["The fair opened on 5 May 2021.", "The fair opened on 6 May 2021."],
        ["Anna Keller leads the museum.", "Anna Kessler leads the museum."],
        ["Google bought Motorola.", "Motorola bought Google."],
    ];
    let same = ["The centre opened on 5 May 2021.", "The center opened on May 5, 2021."];
    for pair in differ {
        judged.say(&pair).await;
    }
    judged.say(&same).await;
    judged.compare().await;
    let became = judged.became().await;
    let expected: Vec<_> = differ.iter().flatten().map(|text| alone(text)).collect();
    assert_eq!(became, [expected, vec![alone(same[0]), merged(same[1], same[0])]].concat());
    assert_eq!(judged.stats().await.asked, Vec::<String>::new());
    assert_eq!(
        judged.strings("SELECT merged_by FROM okt_repository.fact_merges").await,
        [Some("rule".into())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_a_killed_worker_was_given_is_not_paid_for_again() {
    let slow = Latency::Fixed(1_500);
    let behaviour = Behaviour { verdict: always, latency: slow, ..Behaviour::default() };
    let mut judged = Judged::open(behaviour, &[]).await;
    judged.say(&WAYS[..2]).await;
    let worker = TestWorker::start(&judged.fixture.config, Vec::new()).await;
    judged.fixture.ask(DeduplicateFacts { source: None }).await;
    // The first answer is stored, and the second question is out.
    eventually(Duration::from_mins(1), "the second question is out", async || {
        let stored = judged.strings("SELECT answer FROM okt_repository.model_answers").await.len();
        let stats = judged.models.stats();
        if stored == 1 && stats.requests == 2 {
            Ok(())
        } else {
            Err(format!("{stored} stored, {} asked", stats.requests))
        }
    })
    .await;
    drop(worker);
    judged.models.await_stats(|stats| stats.in_flight == 0).await;
    judged.models.behave(Behaviour { verdict: always, keep: true, ..Behaviour::default() });
    judged.fixture.work().await;
    judged.fixture.settled().await;
    assert_eq!(judged.became().await, [alone(WAYS[0]), merged(WAYS[1], WAYS[0])]);
    let stats = judged.stats().await;
    let first = stats.asked.iter().filter(|asked| asked.contains(&format!("A: {}", WAYS[0]))).count();
    assert_eq!((first, stats.requests), (1, 3), "only the one without an answer is asked again: {stats:?}");
}

#[tokio::test]
async fn without_money_facts_stay_two_and_it_is_said() {
    let behaviour = || Behaviour { verdict: always, ..Behaviour::default() };
    // The month's budget of the installation, and what may be spent on the source.
    for (monthly, most, reason) in [("0.000001", None, "budget"), ("0", Some(1_i64), "max_cost_usd")] {
        let mut judged = Judged::open(behaviour(), &[("SVC__PROVIDERS__AI__MONTHLY_USD", monthly)]).await;
        judged.say(&WAYS[..2]).await;
        if let Some(most) = most {
            let statement = "UPDATE okt_repository.sources SET max_cost_micro_usd = $1";
            sqlx::query(statement).bind(most).execute(&mut judged.fixture.connect().await).await.unwrap();
        }
        judged.compare().await;
        assert_eq!(judged.became().await, [alone(WAYS[0]), grouped(WAYS[1], WAYS[0])]);
        let output = judged.output().await;
        assert_eq!((&output["judged"], &output["not_judged"]), (&json!(0), &json!(1)), "{output:#}");
        assert!(output["not_judged_because"].as_str().unwrap().contains(reason), "{output:#}");
        assert_eq!(judged.stats().await.requests, 0);
    }
}

/// A model that does not answer is tried again with the job, and given up in the end.
#[tokio::test]
async fn a_model_that_is_away_for_good_keeps_nobody_waiting() {
    let away = Behaviour {
        verdict: always,
        faults: Faults { error: 1.0, ..Faults::default() },
        ..Behaviour::default()
    };
    let mut judged = Judged::open(away, &[]).await;
    judged.say(&WAYS[..2]).await;
    judged.fixture.work().await;
    judged.fixture.ask(DeduplicateFacts { source: None }).await;
    let mut conn = judged.fixture.connect().await;
    eventually(Duration::from_mins(1), "the job has failed", async || {
        let failed = "UPDATE okt_tasks.jobs SET attempt = 3, scheduled_at = clock_timestamp()
                       WHERE kind = 'deduplicate_facts' AND state = 'retryable' AND attempt < 3";
        match sqlx::query(failed).execute(&mut conn).await.unwrap().rows_affected() {
            0 => Err(judged.models.stats().requests),
            _ => Ok(()),
        }
    })
    .await;
    judged.fixture.settled().await;
    assert_eq!(judged.became().await, [alone(WAYS[0]), grouped(WAYS[1], WAYS[0])]);
    let output = judged.output().await;
    assert_eq!((&output["judged"], &output["not_judged"]), (&json!(0), &json!(1)), "{output:#}");
}
