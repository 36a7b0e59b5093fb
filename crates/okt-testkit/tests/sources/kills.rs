//! Processes that are killed at every step: in the end each source is processed or has failed, and no file is left that
//! no row speaks of.

use std::time::{Duration, Instant};

use http::Method;
use okt_store::{Blobs, Databases, Purpose};
use okt_testkit::jobs::{pdfium, program};
use okt_testkit::process::Process;
use okt_testkit::web::Page;

use crate::blobs::files_below;
use crate::library::{Library, form};

/// How often a process is killed.
const KILLS: u64 = 24;

#[tokio::test]
async fn killed_at_every_step_no_source_is_lost_and_no_file_left() {
    // The one in this process answers requests; those that are killed do the work.
    let library = Library::open(&[]).await;
    let config = library.service.api.app.config().clone();
    let settings = settings(&library);
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &**value)).collect();
    let text = "Bees dance on the comb, and the others follow what they say. ".repeat(3_000);
    library.web.page("/picture.png", Page::new("image/png", b"\x89PNG\r\n\x1a\n picture".to_vec()));
    let mut sources = Vec::new();
    for n in 0..40 {
        let path = format!("/{n}");
        let page = match n % 5 {
            // Read for a while.
            0 => Page::new("text/plain", format!("{n}. {text}")),
            // In the middle of the body for ever, until it is given up.
            1 => Page::html(text.clone()).stops_after(5_000),
            2 => Page::html("gone").status(404),
            3 => Page::html(format!("<article><p>{n} {text}</p><img src=/picture.png></article>")),
            _ => Page::article(&format!("Article {n}")),
        };
        library.web.page(&path, page);
        sources.push(library.add(&path).await);
        let body = form(&[], "a.txt", "text/plain", format!("{n}. {text}").as_bytes());
        let added = library.upload_form(body).await;
        sources.push(added.json()["source_id"].as_str().unwrap().to_owned());
    }
    // A different moment each time: while it starts, claims, fetches, reads, writes.
    for n in 0..KILLS {
        let worker = Process::spawn(program(), &settings);
        tokio::time::sleep(Duration::from_millis(400 + 137 * n)).await;
        drop(worker);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let deadline = Instant::now() + Duration::from_mins(4);
    let (mut processed, mut failed) = (0, 0);
    for source in &sources {
        loop {
            let seen = library.get(&format!("/{source}")).await.json();
            match seen["status"].as_str().unwrap() {
                "processed" => processed += 1,
                "failed" => {
                    assert!(!seen["failure"]["message"].as_str().unwrap().is_empty(), "{seen}");
                    failed += 1;
                }
                _ => {
                    assert!(Instant::now() < deadline, "stuck: {seen}\n{}", worker.log());
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            }
            break;
        }
    }
    println!("{processed} processed, {failed} failed after {KILLS} kills");
    assert!(processed >= 60, "{processed} processed, {failed} failed");
    drop(worker);
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap();
    let blobs = Blobs::open(&config.providers.storage).unwrap();
    okt_jobs::cleanup_files(&databases[0], &blobs, Duration::ZERO, |_| {}).await.unwrap();
    // What rows speak of is there, and nothing else is.
    let root = &config.providers.storage.root;
    let kept = files_below(root).len();
    let wanted = "SELECT count(*) FROM (SELECT id, body_sha256 FROM okt_repository.sources WHERE body_sha256 IS NOT NULL
                   UNION SELECT source_id, sha256 FROM okt_repository.source_images WHERE sha256 IS NOT NULL) AS f";
    let mut conn = library.service.database.connect().await;
    let wanted: i64 = sqlx::query_scalar(wanted).fetch_one(&mut conn).await.unwrap();
    assert_eq!(i64::try_from(kept).unwrap(), wanted);
    for source in &sources {
        let seen = library.get(&format!("/{source}")).await.json();
        if seen["has_stored_body"] == true {
            let path = format!("/{source}/body");
            let request = library.service.request(Method::HEAD, &library.path(&path));
            let answer = request.bearer_auth(&library.owner.token).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{source}");
        }
    }
}

/// As the service in this process, for another one that works on the same things.
pub(crate) fn settings(library: &Library) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Library::SETTINGS
        .iter()
        .chain(&library.service.database.settings())
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    all.push(("SVC__PROVIDERS__RESOLUTION__FETCH__ALLOW_PRIVATE".to_owned(), library.web.allowed()));
    all.push(("SVC__PROVIDERS__RESOLUTION__FETCH__TIMEOUT".to_owned(), "2s".to_owned()));
    all.push(("AUTH_JWTSECRET".to_owned(), "a secret that is long enough for tests".to_owned()));
    if let Some(library) = pdfium() {
        all.push(("SVC__PROVIDERS__PARSING__PDFIUM".to_owned(), library.display().to_string()));
    }
    all
}
