//! Adding sources, seeing them, and removing them.

use std::time::Duration;

use http::Method;
use okt_model::RepositoryId;
use okt_testkit::accounts::{self, register, send};
use okt_testkit::client::Answer;
use okt_testkit::multipart::form;
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use crate::sources::test_app;

#[tokio::test]
async fn a_page_is_added_once_fetched_and_read() {
    let mut app = test_app(&[]).await;
    app.web.page("/bees", Page::article("On Bees"));
    let url = app.web.url("/bees?utm_source=x#part");
    let added = app.ask(Method::POST, "", &json!({"url": url, "max_cost_usd": 0.5})).await;
    assert_eq!(added.status, 202, "{added:?}");
    let (source, job) = (added.json()["source_id"].clone(), added.json()["job_id"].clone());
    assert_eq!(added.json()["resource_type"], "url");
    assert_eq!(added.header("location"), app.path(&format!("/{}", source.as_str().unwrap())));
    let again = app.ask(Method::POST, "", &json!({"url": app.web.url("/bees")})).await;
    assert_eq!((again.status.as_u16(), &again.json()["existing"]), (200, &json!(true)));
    assert_eq!((&again.json()["source_id"], &again.json()["job_id"]), (&source, &job));
    let source = source.as_str().unwrap().to_owned();
    assert_eq!(app.get(&format!("/{source}")).await.json()["status"], "pending");

    app.work().await;
    let seen = app.settled(&source).await;
    assert_eq!(seen["status"], "processed", "{seen}");
    for (field, expected) in [
        ("parsed_title", json!("On Bees")),
        ("kind", json!("html")),
        ("content_type", json!("text/html")),
        ("language", json!("en")),
        ("failure", Value::Null),
        ("has_stored_body", json!(true)),
        ("max_cost_usd", json!(0.5)),
        // Sentences that stand on their own, since there is no model.
        ("fact_count", json!(1)),
    ] {
        assert_eq!(seen[field], expected, "{field}");
    }
    let text: Vec<char> = seen["parsed_text"].as_str().unwrap().chars().collect();
    assert!(!seen["parsed_text"].as_str().unwrap().contains("Imprint"), "{}", seen["parsed_text"]);
    let offsets = seen["sentence_offsets"].as_array().unwrap();
    let sentence = |pair: &Value| {
        let at = |n: usize| usize::try_from(pair[n].as_u64().unwrap()).unwrap();
        text[at(0)..at(1)].iter().collect::<String>()
    };
    let sentences: Vec<String> = offsets.iter().map(sentence).collect();
    assert!(sentences.iter().any(|s| s.starts_with("A forager that has found food")), "{sentences:#?}");
    assert_eq!(seen["fetch_attempts"][0]["provider"], "fetch");
    assert_eq!(seen["fetch_attempts"][0]["outcome"], "taken");
    assert_eq!(app.web.asked(), ["/bees"]);

    // The sentences come in pages, and say the same.
    let mut references = Vec::new();
    let mut path = format!("/{source}/references?limit=7");
    loop {
        let page = app.get(&path).await.json();
        references.extend(page["data"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/{source}/references?limit=7&cursor={cursor}");
    }
    let told: Vec<&str> = references.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(told, sentences);
    let indexes: Vec<u64> = references.iter().map(|row| row["sentence_index"].as_u64().unwrap()).collect();
    assert!(indexes.iter().enumerate().all(|(n, index)| *index == n as u64));
    let repository = format!("/api/v1/repositories/{}", app.repository);
    let repository = send(&app.service, &app.owner.token, Method::GET, &repository, &json!({})).await;
    assert_eq!(repository.json()["counts"]["sources"], 1);
}

#[tokio::test]
async fn what_names_no_source_is_refused_with_its_field() {
    let app = test_app(&[]).await;
    for (body, field) in [
        (json!({}), "url"),
        (json!({"url": "https://example.org", "doi": "10.1000/182"}), "url"),
        (json!({"url": "bees"}), "url"),
        (json!({"url": "file:///etc/passwd"}), "url"),
        (json!({"url": "https://ada:secret@example.org/"}), "url"),
        (json!({"doi": "https://example.org"}), "doi"),
        (json!({"doi": "10.1000/182", "max_cost_usd": -1}), "max_cost_usd"),
        (json!({"doi": "10.1000/182", "investigation_id": uuid::Uuid::nil()}), "investigation_id"),
        (json!({"doi": "10.1000/182", "status": "processed"}), "status"),
    ] {
        let refused = app.ask(Method::POST, "", &body).await;
        assert_eq!(refused.status, 422, "{body}: {refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], field, "{body}");
    }
    assert_eq!(app.get("").await.json()["data"], json!([]));
}

#[tokio::test]
async fn a_doi_is_the_same_source_however_it_is_written() {
    let app = test_app(&[]).await;
    let first = app.ask(Method::POST, "", &json!({"doi": "10.1000/ABC"})).await;
    assert_eq!(first.json()["resource_type"], "doi");
    for body in [json!({"doi": "doi:10.1000/abc"}), json!({"url": "https://doi.org/10.1000/abc"})] {
        let again = app.ask(Method::POST, "", &body).await;
        assert_eq!((again.status.as_u16(), &again.json()["source_id"]), (200, &first.json()["source_id"]));
    }
    // Twenty at once are one.
    let body = json!({"url": "https://example.org/a"});
    let all = futures_util::future::join_all((0..20).map(|_| app.ask(Method::POST, "", &body))).await;
    let ids: std::collections::BTreeSet<String> =
        all.iter().map(|answer| answer.json()["source_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(all.iter().filter(|answer| answer.status == 202).count(), 1);
}

#[tokio::test]
async fn a_list_shows_what_is_asked_for_in_pages() {
    let mut app = test_app(&[]).await;
    app.web.page("/a", Page::article("Apples"));
    app.web.page("/plums", Page::html("<title>B</title><p>Too short.</p>"));
    let (apples, short) = (app.add_page("/a").await, app.add_page("/plums").await);
    app.work().await;
    app.settled(&apples).await;
    assert_eq!(app.settled(&short).await["failure"]["code"], "too_little_content");
    let ids = async |query: &str| {
        let page = app.get(query).await;
        assert_eq!(page.status, 200, "{query}: {page:?}");
        let rows = page.json()["data"].as_array().unwrap().clone();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [short.clone(), apples.clone()]);
    assert_eq!(ids("?sort=oldest").await, [apples.clone(), short.clone()]);
    assert_eq!(ids("?status=failed").await, [&*short]);
    assert_eq!(ids("?status=processed&kind=html").await, [&*apples]);
    eventually(Duration::from_mins(1), "its words are listed", async || {
        let found = ids("?q=APPLE").await;
        if found == [&*apples] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    assert_eq!(ids("?q=%2Fplums").await, [&*short], "a part of the address of what has no text");
    let address: String = url::form_urlencoded::byte_serialize(app.web.url("/a").as_bytes()).collect();
    assert_eq!(ids(&format!("?q={address}")).await, [&*apples]);
    assert_eq!(ids("?q=apple&sort=oldest&status=failed").await, [""; 0]);
    assert!(ids("?published_from=2020-01-01").await.is_empty());
    let first = app.get("?limit=1").await.json();
    let next = app.get(&format!("?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await.json();
    assert_eq!((&next["data"][0]["id"], &next["next_cursor"]), (&json!(apples), &Value::Null));
    for query in [
        "?status=new",
        "?sort=best",
        "?limit=0",
        "?published_from=soon",
        "?investigation_id=01a1e018-8541-71d7-8946-53b9e4e60cee",
    ] {
        assert_eq!(app.get(query).await.status, 422, "{query}");
    }
}

#[tokio::test]
async fn a_file_is_brought_along_once() {
    let mut app = test_app(&[]).await;
    let text = "Bees dance. They do so on the comb. Others follow the dance and fly to the flowers.";
    let first = app.upload("dances.txt", "text/plain", text.as_bytes()).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.json()["resource_type"], "upload");
    let again = app.upload("copy.txt", "application/pdf", text.as_bytes()).await;
    assert_eq!((again.status.as_u16(), &again.json()["source_id"]), (200, &first.json()["source_id"]));
    let titled = form(
        &[("title", "A title"), ("max_cost_usd", "0.25")],
        "b.md",
        "text/markdown",
        b"# Wax\n\nBees make wax of honey. It takes a lot of it.",
    );
    let titled = app.upload_form(titled).await;
    assert_eq!(titled.status, 202, "{titled:?}");
    app.work().await;
    let source = first.json()["source_id"].as_str().unwrap().to_owned();
    let seen = app.settled(&source).await;
    assert_eq!((&seen["status"], &seen["kind"]), (&json!("processed"), &json!("text")), "{seen}");
    assert_eq!(seen["url"], format!("upload://{source}"));
    assert_eq!(seen["file_name"], "dances.txt");
    assert_eq!(seen["sentence_offsets"].as_array().unwrap().len(), 3);
    let titled = app.settled(titled.json()["source_id"].as_str().unwrap()).await;
    assert_eq!((&titled["kind"], &titled["max_cost_usd"]), (&json!("markdown"), &json!(0.25)));
    assert_eq!(titled["parsed_title"], "A title", "what was said of it stays");
}

#[tokio::test]
async fn forms_that_are_none_leave_nothing_behind() {
    let app = test_app(&[("SVC__SERVER__LIMITS__UPLOAD_BYTES", "100000")]).await;
    let files = || {
        let root = &app.service.api.app.config().providers.storage.root;
        crate::sources::blobs::files_below(root)
    };
    let whole = form(&[], "a.txt", "text/plain", b"Some text. More text.");
    let cut = whole[..whole.len() - 10].to_vec();
    let mut twice = whole[..whole.len() - 20].to_vec();
    twice.extend_from_slice(b"\r\n");
    twice.extend_from_slice(&whole);
    for (case, form, status) in [
        ("empty", form(&[], "a.txt", "text/plain", b""), 422),
        ("no file", b"--a-line-between--\r\n".to_vec(), 422),
        ("unknown field", form(&[("kind", "pdf")], "a.txt", "text/plain", b"x"), 422),
        ("bad title", form(&[("title", &"x".repeat(2_000))], "a.txt", "text/plain", b"x"), 422),
        ("bad cost", form(&[("max_cost_usd", "much")], "a.txt", "text/plain", b"x"), 422),
        ("too large", form(&[], "a.txt", "text/plain", &vec![b'x'; 200_000]), 413),
        ("cut off", cut, 400),
        ("two files", twice, 422),
        ("garbage", b"\0\xff nothing".to_vec(), 400),
    ] {
        let refused = app.upload_form(form).await;
        assert_eq!(refused.status, status, "{case}: {refused:?}");
        refused.problem();
        // What was being written goes a moment after it was refused.
        eventually(Duration::from_secs(10), case, async || match files().as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        })
        .await;
    }
    let request = app.service.request(Method::POST, &app.path("/upload"));
    let wrong = Answer::of(request.bearer_auth(&app.owner.token).json(&json!({}))).await;
    assert_eq!(wrong.status, 415, "{wrong:?}");
    assert_eq!(app.get("").await.json()["data"], json!([]));
}

#[tokio::test]
async fn a_source_goes_with_everything_that_is_kept_of_it() {
    let mut app = test_app(&[]).await;
    app.web.page("/bees", Page::article("On Bees"));
    let source = app.add_page("/bees").await;
    app.work().await;
    app.settled(&source).await;
    let root = app.service.api.app.config().providers.storage.root.clone();
    assert!(!crate::sources::blobs::files_below(&root).is_empty());
    let would = app.ask(Method::DELETE, &format!("/{source}?dry_run=true"), &json!({})).await;
    assert_eq!((would.status.as_u16(), &would.json()["dry_run"]), (200, &json!(true)));
    assert!(would.json()["bytes"].as_u64().unwrap() > 500);
    assert_eq!(app.get(&format!("/{source}")).await.status, 200, "a dry run changes nothing");
    assert_eq!(app.ask(Method::DELETE, &format!("/{source}"), &json!({})).await.status, 204);
    assert_eq!(app.get(&format!("/{source}")).await.status, 404);
    assert_eq!(app.ask(Method::DELETE, &format!("/{source}"), &json!({})).await.status, 404);
    assert!(crate::sources::blobs::files_below(&root).is_empty());
    let left = "SELECT count(*) FROM okt_repository.source_texts";
    assert_eq!(accounts::count(&app.service, left).await, 0);
    // And it can be added anew.
    let again = app.add_page("/bees").await;
    assert_ne!(again, source);
    assert_eq!(app.settled(&again).await["status"], "processed");
}

#[tokio::test]
async fn a_stranger_sees_nothing_of_another_repository() {
    let mut app = test_app(&[]).await;
    app.web.page("/bees", Page::article("On Bees"));
    let source = app.add_page("/bees").await;
    app.work().await;
    app.settled(&source).await;
    let stranger = register(&app.service, "stranger").await;
    let made = json!({"name": "Another"});
    let own = send(&app.service, &stranger.token, Method::POST, "/api/v1/repositories", &made).await;
    let own: RepositoryId = own.json()["id"].as_str().unwrap().parse().unwrap();
    for (repository, rest) in [
        (app.repository, String::new()),
        (app.repository, format!("/{source}")),
        (app.repository, format!("/{source}/body")),
        (app.repository, format!("/{source}/references")),
        (own, format!("/{source}")),
        (own, format!("/{source}/body")),
        (own, format!("/{source}/references")),
    ] {
        let path = format!("/api/v1/repositories/{repository}/sources{rest}");
        let refused = send(&app.service, &stranger.token, Method::GET, &path, &json!({})).await;
        assert_eq!(refused.status, 404, "{path}: {refused:?}");
    }
    for (method, rest) in [(Method::POST, "/process"), (Method::POST, "/retry"), (Method::DELETE, "")] {
        let path = format!("/api/v1/repositories/{own}/sources/{source}{rest}");
        let refused = send(&app.service, &stranger.token, method, &path, &json!({})).await;
        assert_eq!(refused.status, 404, "{path}: {refused:?}");
    }
    // The same address is a source of its own there.
    let path = format!("/api/v1/repositories/{own}/sources");
    let url = json!({"url": app.web.url("/bees")});
    let added = send(&app.service, &stranger.token, Method::POST, &path, &url).await;
    assert_eq!((added.status.as_u16(), &added.json()["existing"]), (202, &json!(false)));
}

#[tokio::test]
async fn a_list_of_references_becomes_sources_row_by_row() {
    let app = test_app(&[]).await;
    let list = "@article{dance, title={The Dance}, author={Frisch, Karl}, year={1967}, doi={10.1000/DANCE}}\n\
                @misc{page, title={A Page}, url={https://example.org/page}}\n\
                @book{none, title={No way to it}}\n\
                @article{again, title={The Dance, again}, doi={10.1000/dance}}\n\
                @article{broken, title={";
    let upload = async |list: &str, name: &str| {
        app.send_form("/sources/import", form(&[], name, "text/plain", list.as_bytes())).await
    };
    let answer = upload(list, "bees.bib").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    let outcomes: Vec<_> =
        told["data"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["added", "added", "skipped", "existing", "invalid"], "{told}");
    assert_eq!((&told["added"], &told["existing"], &told["invalid"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(told["data"][0]["source_id"], told["data"][3]["source_id"]);
    assert!(told["data"][4]["message"].as_str().unwrap().contains("line 5"), "{told}");
    let dance = app.get(&format!("/{}", told["data"][0]["source_id"].as_str().unwrap())).await.json();
    assert_eq!((&dance["parsed_title"], &dance["doi"]), (&json!("The Dance"), &json!("10.1000/dance")));
    assert_eq!((&dance["author"], &dance["published_at"]), (&json!("Karl Frisch"), &json!("1967-01-01")));
    // Once more adds nothing.
    assert_eq!(upload(list, "bees.bib").await.json()["added"], 0);
    let refused = upload("Dear reader, this is a letter.", "letter.txt").await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"));
}

#[tokio::test]
async fn a_list_of_references_that_is_uploaded_is_imported() {
    let app = test_app(&[]).await;
    let entry = |n: usize| format!("@article{{a{n}, title={{Paper {n}}}, doi={{10.1000/{n}}}}}\n");
    let named = app.upload("bees.bib", "application/octet-stream", entry(1).as_bytes()).await;
    assert_eq!(named.status, 207, "{named:?}");
    assert_eq!((&named.json()["added"], &named.json()["data"][0]["label"]), (&json!(1), &json!("a1")));
    let ris = "TY  - JOUR\nTI  - The Dance\nDO  - 10.1000/dance\nER  - \n";
    for (name, kind, bytes) in [
        ("refs.txt", "text/plain", entry(2)),
        ("export.ris", "application/x-research-info-systems", ris.to_owned()),
        ("many.bib", "text/plain", (10..900).map(entry).collect()),
        (
            "csl.json",
            "application/json",
            r#"[{"id": "x", "type": "book", "title": "T", "DOI": "10.1000/9"}]"#.to_owned(),
        ),
    ] {
        let told = app.upload(name, kind, bytes.as_bytes()).await;
        assert_eq!(told.status, 207, "{name}: {told:?}");
        let told = told.json();
        assert_eq!((&told["skipped"], &told["invalid"]), (&json!(0), &json!(0)), "{name}: {told}");
        assert_eq!(told["added"], told["data"].as_array().unwrap().len(), "{name}");
    }
    let listed = app.get("?q=upload://").await.json();
    assert_eq!(listed["data"], json!([]), "none of them was kept as a text");

    // What is said of one source fits no list, and a text that speaks of an entry is a text.
    let titled =
        app.upload_form(form(&[("title", "Mine")], "b.bib", "text/plain", entry(3).as_bytes())).await;
    assert_eq!(
        (titled.status.as_u16(), &titled.json()["errors"][0]["field"]),
        (422, &json!("title")),
        "{titled:?}"
    );
    let text = b"Write @article{key, title={T}} to cite a paper. Bees dance on the comb.";
    assert_eq!(app.upload("howto.txt", "text/plain", text).await.status, 202);
}
