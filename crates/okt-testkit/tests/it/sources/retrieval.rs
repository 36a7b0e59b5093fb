//! From an address to text: what is told when it goes wrong, and what can be done about it.

use http::Method;
use okt_testkit::accounts;
use okt_testkit::web::{Page, Web};
use serde_json::{Value, json};

use crate::parse::made;
use crate::sources::test_app;

#[tokio::test]
async fn what_can_not_be_had_says_why_and_can_be_tried_again() {
    let mut app = test_app(&[]).await;
    app.web.page("/forbidden", Page::html("no").status(403));
    app.web.page("/picture", Page::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()));
    let gone = app.add_page("/gone").await;
    let forbidden = app.add_page("/forbidden").await;
    let picture = app.add_page("/picture").await;
    app.work().await;
    for (source, stage, code) in [
        (&gone, "fetch", "not_found"),
        (&forbidden, "fetch", "forbidden"),
        (&picture, "fetch", "unsupported_type"),
    ] {
        let seen = app.settled(source).await;
        assert_eq!((&seen["status"], &seen["failure"]["stage"]), (&json!("failed"), &json!(stage)), "{seen}");
        assert_eq!(seen["failure"]["code"], code, "{seen}");
        assert!(!seen["failure"]["message"].as_str().unwrap().is_empty());
        assert_eq!(seen["failure"]["retryable"], false, "{seen}");
    }
    let seen = app.get(&format!("/{forbidden}")).await.json();
    let attempts = seen["fetch_attempts"].as_array().unwrap();
    // The first, and two more as the settings say.
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    assert!(attempts.iter().all(|attempt| attempt["status"] == 403 && attempt["outcome"] == "forbidden"));
    let processed = app.ask(Method::POST, &format!("/{gone}/process"), &json!({})).await;
    assert_eq!((processed.status.as_u16(), &*processed.problem()), (409, "conflict"));

    app.web.page("/gone", Page::article("Found"));
    let retried = app.ask(Method::POST, &format!("/{gone}/retry"), &json!({})).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let seen = app.settled(&gone).await;
    assert_eq!((&seen["status"], &seen["failure"]), (&json!("processed"), &json!(null)), "{seen}");
    let again = app.ask(Method::POST, &format!("/{gone}/retry"), &json!({})).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"));
    let processed = app.ask(Method::POST, &format!("/{gone}/process"), &json!({})).await;
    assert_eq!(processed.status, 202, "{processed:?}");
    assert_eq!(app.settled(&gone).await["status"], "processed");
}

/// Through the job as well as through the source.
#[tokio::test]
async fn a_fetch_that_failed_is_a_job_that_failed_and_can_be_retried() {
    let mut app = test_app(&[]).await;
    let added = app.ask(Method::POST, "", &json!({"url": app.web.url("/gone")})).await.json();
    let (source, job) = (added["source_id"].as_str().unwrap(), added["job_id"].as_str().unwrap());
    app.work().await;
    let failed = app.settled(source).await;
    assert_eq!(failed["failure"]["code"], "not_found", "{failed}");
    let ended = app.ended(job).await;
    assert_eq!(ended["state"], "discarded", "{ended:#}");
    assert_eq!(ended["errors"][0]["message"], failed["failure"]["message"], "{ended:#}");
    assert_eq!(ended["output"]["failure"]["code"], "not_found", "{ended:#}");
    assert_eq!(ended["successors"], json!([]), "{ended:#}");
    // What the source says of its failure is not overwritten by whoever looks for sources that were forgotten.
    accounts::sql(
        &app.service,
        "UPDATE okt_tasks.jobs SET finished_at = finished_at - interval '1 minute' WHERE state = 'discarded'",
    )
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(app.settled(source).await["failure"], failed["failure"]);

    app.web.page("/gone", Page::article("Found"));
    let retry = format!("/api/v1/repositories/{}/jobs/{job}/retry", app.repository);
    let retried = accounts::send(&app.service, &app.owner.token, Method::POST, &retry, &json!({})).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let ended = app.ended(job).await;
    assert_eq!((&ended["state"], &ended["output"]["status"]), (&json!("completed"), &json!("fetched")));
    let next = ended["successors"].as_array().unwrap();
    assert_eq!(next.len(), 1, "{ended:#}");
    let seen = app.settled(source).await;
    assert_eq!((&seen["status"], &seen["job_id"]), (&json!("processed"), &next[0]), "{seen}");
}

/// An address that was changed behind our back is checked when it is fetched, not when it was added.
#[tokio::test]
async fn an_address_that_came_to_lead_inside_is_refused_at_retry() {
    let mut app = test_app(&[]).await;
    let inside = Web::start().await;
    inside.page("/secret", Page::article("Secret"));
    let source = app.add_page("/gone").await;
    app.work().await;
    assert_eq!(app.settled(&source).await["failure"]["code"], "not_found");
    app.web.page("/away", Page::html("").status(302).header("location", &inside.url("/secret")));
    for address in [
        inside.url("/secret"),
        inside.url("/secret").replace("127.0.0.1", "localhost"),
        inside.url("/secret").replace("127.0.0.1", "[::ffff:127.0.0.1]"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://2130706433/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "upload://nothing".to_owned(),
        app.web.url("/away"),
    ] {
        let change = format!("UPDATE okt_repository.sources SET url = '{address}' WHERE id = '{source}'");
        accounts::sql(&app.service, &change).await;
        assert_eq!(app.ask(Method::POST, &format!("/{source}/retry"), &json!({})).await.status, 202);
        let seen = app.settled(&source).await;
        assert_eq!(seen["failure"]["code"], "address_refused", "{address}: {seen}");
    }
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
}

#[tokio::test]
async fn a_source_whose_job_is_cancelled_or_given_up_says_so() {
    let mut app = test_app(&[]).await;
    app.web.page("/slow", Page::article("Slow").stops_after(10));
    let added = app.ask(Method::POST, "", &json!({"url": app.web.url("/slow")})).await.json();
    let (source, job) = (added["source_id"].as_str().unwrap(), added["job_id"].as_str().unwrap());
    app.work().await;
    app.web.await_asked("/slow", 1).await;
    assert_eq!(app.get(&format!("/{source}")).await.json()["status"], "fetching");
    let cancel = format!("/api/v1/repositories/{}/jobs/{job}/cancel", app.repository);
    let cancelled = accounts::send(&app.service, &app.owner.token, Method::POST, &cancel, &json!({})).await;
    assert!(cancelled.status.is_success(), "{cancelled:?}");
    // It ended long enough ago, for a test.
    let old =
        "UPDATE okt_tasks.jobs SET finished_at = finished_at - interval '1 minute' WHERE state = 'cancelled'";
    while app.get(&format!("/{source}")).await.json()["status"] == "fetching" {
        accounts::sql(&app.service, old).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let seen = app.settled(source).await;
    assert_eq!(
        (&seen["failure"]["code"], &seen["failure"]["retryable"]),
        (&json!("cancelled"), &json!(true))
    );
    app.web.page("/slow", Page::article("Slow"));
    assert_eq!(app.ask(Method::POST, &format!("/{source}/retry"), &json!({})).await.status, 202);
    assert_eq!(app.settled(source).await["status"], "processed");
}

#[tokio::test]
async fn a_provider_that_keeps_failing_for_a_host_is_left_out_for_a_while() {
    let settings = [
        ("SVC__PROVIDERS__RESOLUTION__AUTO_SKIP__MIN_SAMPLE", "3"),
        ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__MAX_ATTEMPTS", "3"),
    ];
    let mut app = test_app(&settings).await;
    for path in ["/a", "/b"] {
        app.web.page(path, Page::html("no").status(403));
    }
    let first = app.add_page("/a").await;
    app.work().await;
    app.settled(&first).await;
    let tries = app.web.asked().len();
    let second = app.add_page("/b").await;
    let seen = app.settled(&second).await;
    assert_eq!(app.web.asked().len(), tries, "nobody was asked: {seen}");
    assert_eq!(seen["failure"]["retryable"], true, "{seen}");
    // Once the while is over it is tried again.
    accounts::sql(
        &app.service,
        "UPDATE okt_system.host_providers SET failed_at = failed_at - interval '25 hours'",
    )
    .await;
    app.web.page("/b", Page::article("B"));
    assert_eq!(app.ask(Method::POST, &format!("/{second}/retry"), &json!({})).await.status, 202);
    assert_eq!(app.settled(&second).await["status"], "processed");
}

#[tokio::test]
async fn a_pdf_is_read_with_the_place_of_every_sentence() {
    let mut app = test_app(&[]).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../okt-parse/fixtures/pdf");
    let pdf = std::fs::read(format!("{folder}/article.pdf")).expect("the project's own article");
    let added = app.upload("article.pdf", "application/pdf", &pdf).await;
    app.work().await;
    let seen = app.settled(added.json()["source_id"].as_str().unwrap()).await;
    assert_eq!((&seen["status"], &seen["kind"]), (&json!("processed"), &json!("pdf")), "{seen}");
    let (offsets, boxes) =
        (seen["sentence_offsets"].as_array().unwrap(), seen["sentence_boxes"].as_array().unwrap());
    assert!(offsets.len() > 3 && offsets.len() == boxes.len(), "{} {}", offsets.len(), boxes.len());
    assert!(boxes.iter().all(|places| {
        let numbers = places.as_array().unwrap();
        numbers.len() >= 5 && numbers.len() % 5 == 0 && numbers.chunks(5).all(|place| place[0].is_u64())
    }));
    let pages = seen["pages"].as_array().unwrap();
    // Wherever a sentence stands, it stands within its page.
    for place in boxes.iter().flat_map(|places| places.as_array().unwrap().chunks(5)) {
        let page = pages.iter().find(|page| page["number"] == place[0]).expect("the page of a sentence");
        let fits = |at: usize, size: &str| place[at].as_f64() <= page[size].as_f64().map(|size| size + 1.0);
        assert!(fits(3, "width") && fits(4, "height"), "{place:?} {page}");
    }
    // Page by page it is the same, with what rests on each sentence.
    let source = seen["id"].as_str().unwrap();
    let cited = app.get(&format!("/{source}/references?cited=true&limit=200")).await.json();
    let cited = cited["data"].as_array().unwrap();
    assert!(!cited.is_empty(), "{seen}");
    let mut resting = 0;
    for page in pages {
        let number = &page["number"];
        let told = app.get(&format!("/{source}/pages/{number}")).await.json();
        assert_eq!((&told["number"], &told["width"]), (number, &page["width"]), "{told}");
        for sentence in told["sentences"].as_array().unwrap() {
            let index = usize::try_from(sentence["index"].as_u64().unwrap()).unwrap();
            let places = boxes[index].as_array().unwrap();
            let here: Vec<Value> = places
                .chunks(5)
                .filter(|place| &place[0] == number)
                .map(|place| Value::from(place[1..].to_vec()))
                .collect();
            let near = |a: &Value, b: &Value| {
                let pairs = a.as_array().unwrap().iter().zip(b.as_array().unwrap());
                pairs.into_iter().all(|(a, b)| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 0.01)
            };
            let found = sentence["boxes"].as_array().unwrap();
            assert!(found.len() == here.len() && found.iter().zip(&here).all(|(a, b)| near(a, b)), "{told}");
            if places[0] == *number && sentence["fact_ids"] != json!([]) {
                resting += 1;
                let row = cited.iter().find(|row| row["sentence_index"] == sentence["index"]).expect("cited");
                assert_eq!((&row["text"], &row["page"]), (&sentence["text"], number));
                assert_eq!(row["facts"][0]["fact_id"], sentence["fact_ids"][0]);
            }
        }
    }
    assert_eq!(resting, cited.len());
    assert_eq!(app.get(&format!("/{source}/pages/1000")).await.problem(), "not_found");
}

/// More pages than images are looked at for facts; the second is turned to be shown.
#[tokio::test]
async fn every_page_of_a_pdf_has_its_size_and_its_picture() {
    let mut app =
        test_app(&[("SVC__PROVIDERS__DECOMPOSITION__IMAGE_EXTRACTION__MAX_IMAGES_PER_SOURCE", "2")]).await;
    let count = 23;
    let kids: Vec<String> = (0..count).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        format!("<</Type/Pages/Kids[{}]/Count {count}>>", kids.join(" ")).into_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    for page in 0..count {
        let turned = if page == 1 { "/Rotate 90" } else { "" };
        let entry = format!(
            "<</Type/Page/Parent 2 0 R/Contents {} 0 R/Resources<</Font<</F 3 0 R>>>>/MediaBox[0 0 300 200]{turned}>>",
            5 + 2 * page
        );
        objects.push(entry.into_bytes());
        let text = format!("BT /F 12 Tf 20 100 Td (Bees of the hive number {page} dance on the comb.) Tj ET");
        objects.push(made::stream("", text.as_bytes()));
    }
    let added = app.upload("hives.pdf", "application/pdf", &made::file(&objects)).await;
    app.work().await;
    let seen = app.settled(added.json()["source_id"].as_str().unwrap()).await;
    let (pages, images) = (seen["pages"].as_array().unwrap(), seen["images"].as_array().unwrap());
    assert_eq!(pages.len(), count, "{seen:#}");
    for (page, number) in pages.iter().zip(1..) {
        let (size, rotation) = if number == 2 { ((200.0, 300.0), 90) } else { ((300.0, 200.0), 0) };
        let shown = (page["width"].as_f64().unwrap(), page["height"].as_f64().unwrap());
        assert_eq!((&page["number"], shown, &page["rotation"]), (&json!(number), size, &json!(rotation)));
        let image = images.iter().find(|image| image["id"] == page["image_id"]).expect("its picture");
        assert_eq!((&image["kind"], &image["page_number"]), (&json!("page"), &json!(number)));
    }
    let text = app.upload("bees.txt", "text/plain", b"Bees dance on the comb to tell of food.").await;
    let text = app.settled(text.json()["source_id"].as_str().unwrap()).await;
    assert_eq!(text["pages"], json!([]));
}
