//! The first hits are looked at again by a reranking model, and nothing depends on it.

use std::time::Duration;

use http::Method;
use okt_model::EXTRACTIVE_MODEL;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::{Behaviour, Faults};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{add, rows, search, settled};

/// The number in a text is how well it answers any question.
fn numbered() -> Behaviour {
    let relevance = |_: &str, text: &str| {
        let digits: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(-1.0)
    };
    Behaviour { relevance, ..Behaviour::default() }
}

fn faulty(faults: Faults) -> Behaviour {
    Behaviour { faults, ..numbered() }
}

/// Eight texts, of which six are looked at again.
async fn start(catalogue: &str) -> (TestApp, Vec<String>) {
    let mut app = TestApp::builder()
        .models(numbered(), catalogue)
        .settings(&[
            ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL),
            ("SVC__SEARCH__RERANK__MODEL", MODEL),
            ("SVC__SEARCH__RERANK__CANDIDATES", "6"),
            ("SVC__SEARCH__RERANK__TIMEOUT", "600ms"),
        ])
        .start()
        .await;
    app.work().await;
    let mut ids = Vec::new();
    for number in 0..8 {
        let more = "and honey ".repeat(8 - number);
        let text = format!("Keeper {number} found honey {more} in the apiary of the village.");
        ids.push(add(&app, &format!("t{number}"), "Honey", &text).await);
    }
    settled(&app, &ids).await;
    (app, ids)
}

/// The numbers of rows, in their order.
fn numbers(found: &Value) -> Vec<u32> {
    let number = |row: &Value| row["text"].as_str().unwrap()["Keeper ".len()..][..1].parse().unwrap();
    rows(found).iter().map(number).collect()
}

fn before(row: &Value) -> Option<usize> {
    row["explain"]["rerank"]["rank_before"].as_u64().map(|rank| usize::try_from(rank).unwrap())
}

#[tokio::test]
async fn the_first_hits_are_in_the_order_of_the_model_on_every_page_and_paid_once() {
    let (app, _) = start("input_cost_per_1m = 1.0\nsearch_cost_per_1k = 2.0").await;
    let rest = "&types=passages&explain=true&mode=lexical";
    let whole = search(&app, "honey", &format!("{rest}&limit=200")).await;
    assert_eq!((&whole["degraded_reason"], rows(&whole).len()), (&Value::Null, 8), "{whole:#}");
    let first = &rows(&whole)[..6];
    let mut looked_at: Vec<usize> = first.iter().filter_map(before).collect();
    assert!(numbers(&whole)[..6].is_sorted_by(|one, other| one > other), "{whole:#}");
    assert!(!looked_at.is_sorted(), "it has changed something: {whole:#}");
    looked_at.sort_unstable();
    assert_eq!(looked_at, [1, 2, 3, 4, 5, 6], "{whole:#}");
    for (row, number) in first.iter().zip(numbers(&whole)) {
        assert_eq!(row["explain"]["rerank"]["score"], json!(f64::from(number)), "{row:#}");
        assert_eq!(
            (&row["found_by"], &row["explain"]["lexical"]["rank"]),
            (&json!(["lexical"]), &json!(before(row)))
        );
    }
    assert!(rows(&whole)[6..].iter().all(|row| row["explain"]["rerank"].is_null()), "{whole:#}");
    let scores: Vec<f64> = rows(&whole).iter().map(|row| row["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, other| one > other), "{scores:?}");

    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = search(&app, "honey", &format!("{rest}&limit=3{cursor}")).await;
        paged.extend(numbers(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, numbers(&whole));

    // Questions that need several texts, and those that are not written yet, are none for it.
    for other in ["&mode=deep", "&mode=lexical&prefix=true"] {
        let found = search(&app, "honey", &format!("&types=passages&explain=true{other}")).await;
        assert!(rows(&found).iter().all(|row| before(row).is_none()), "{other}: {found:#}");
        assert_eq!(
            found["degraded_reason"].as_str().filter(|why| why.starts_with("rerank")),
            None,
            "{other}"
        );
    }
    let stats = app.models.stats();
    assert_eq!(stats.requests, 1, "all of it was asked once");
    let usage = app.read("/ai/usage?group_by=operation").await;
    let paid: Vec<&Value> =
        usage["data"].as_array().unwrap().iter().filter(|row| row["key"] == "question_reranking").collect();
    let usd = 0.002 + f64::from(u32::try_from(stats.tokens_in).unwrap()) / 1e6;
    assert_eq!((paid.len(), &paid[0]["calls"]), (1, &json!(1)), "{usage:#}");
    assert!((paid[0]["usd"].as_f64().unwrap() - usd).abs() < 2e-6, "{usage:#}: {usd}");
    assert_eq!(app.count("SELECT count(*) FROM okt_system.ai_holds").await, 0);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_hits_as_they_are_and_is_left_alone_for_a_while() {
    let (app, sources) = start("").await;
    let ask = async |q: &str| search(&app, q, "&types=passages&explain=true&mode=lexical").await;
    let plain = search(&app, "honey", "&types=passages&mode=lexical&prefix=true").await;
    let plain = numbers(&plain);
    let ranked = search(&app, "honey", "&types=passages&mode=lexical&limit=3").await;
    assert_eq!(numbers(&ranked), [5, 4, 3], "{ranked:#}");
    assert_eq!(plain, [0, 1, 2, 3, 4, 5, 6, 7], "more honey is more honey");

    // Wrong numbers, the same one twice, none at all: what is left counts, and nothing is lost.
    app.models.behave(faulty(Faults { garbage: 1.0, ..Faults::default() }));
    let found = ask("honey garbage").await;
    assert_eq!(
        (numbers(&found), &found["degraded_reason"]),
        (vec![1, 0, 2, 3, 4, 5, 6, 7], &Value::Null),
        "{found:#}"
    );
    app.models.behave(faulty(Faults { truncated: 1.0, ..Faults::default() }));
    let found = ask("honey truncated").await;
    assert_eq!(numbers(&found), [2, 1, 0, 3, 4, 5, 6, 7], "the first three were ranked: {found:#}");

    for (at, faults) in [
        Faults { error: 1.0, ..Faults::default() },
        Faults { html: 1.0, ..Faults::default() },
        Faults { down: 1.0, ..Faults::default() },
        Faults { rate_limited: 1.0, ..Faults::default() },
        Faults { hang: 1.0, ..Faults::default() },
        Faults { error: 1.0, ..Faults::default() },
    ]
    .into_iter()
    .enumerate()
    {
        app.models.behave(faulty(faults));
        let found = ask(&format!("honey {at}x")).await;
        assert_eq!(found["degraded_reason"], "rerank_unavailable", "{at}: {found:#}");
        assert_eq!((&found["search_mode"], numbers(&found)), (&json!("lexical"), plain.clone()), "{at}");
    }
    // What was ranked before is known, until a text is another one: then the next page can't be told from the first.
    let cursor = ranked["next_cursor"].as_str().unwrap();
    let next = async || {
        search(&app, "honey", &format!("&types=passages&mode=lexical&limit=3&cursor={cursor}")).await
    };
    assert_eq!(numbers(&next().await), [2, 1, 0]);
    assert_eq!(app.delete(&format!("/sources/{}", sources[5])).await.status, 204);
    let found = next().await;
    assert_eq!(
        (rows(&found).len(), &found["degraded_reason"]),
        (0, &json!("rerank_unavailable")),
        "{found:#}"
    );

    let mut tries = 0;
    eventually(Duration::from_secs(30), "it is left alone", async || {
        tries += 1;
        let asked = app.models.stats().requests;
        let found = ask(&format!("honey {tries}y")).await;
        assert_eq!(found["degraded_reason"], "rerank_unavailable");
        if app.models.stats().requests == asked { Ok(()) } else { Err(asked) }
    })
    .await;
    let page = search(&app, "honey later", "&types=passages&mode=lexical&limit=3").await;
    app.models.behave(numbered());
    eventually(Duration::from_secs(15), "it is asked again", async || {
        let found = ask("honey back").await;
        if found["degraded_reason"].is_null() { Ok(()) } else { Err(found) }
    })
    .await;
    // Pages that began without it go on without it.
    let cursor = page["next_cursor"].as_str().unwrap();
    let next =
        search(&app, "honey later", &format!("&types=passages&mode=lexical&limit=3&cursor={cursor}")).await;
    assert_eq!((numbers(&page), numbers(&next)), (vec![0, 1, 2], vec![3, 4, 6]), "{next:#}");
}

#[tokio::test]
async fn a_repository_without_money_is_not_reranked() {
    let (app, _) = start("search_cost_per_1k = 2.0").await;
    let set = app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 0.003})).await;
    assert_eq!(set.status, 200, "{set:?}");
    let ask = async |q: &str| search(&app, q, "&types=passages&mode=lexical").await;
    assert_eq!(ask("honey one").await["degraded_reason"], Value::Null);
    let found = ask("honey two").await;
    assert_eq!((&found["degraded_reason"], numbers(&found).len()), (&json!("rerank_budget"), 8), "{found:#}");
    assert_eq!(ask("honey one").await["degraded_reason"], Value::Null, "what is known costs nothing");
    assert_eq!(app.models.stats().requests, 1);
}
