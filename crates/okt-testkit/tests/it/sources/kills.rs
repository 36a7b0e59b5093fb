//! Processes that are killed at every step: in the end each source is processed or has failed, and no file is left that
//! no row speaks of.

use std::time::Duration;

use http::Method;
use okt_store::{Blobs, Databases, Purpose};
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;

use crate::sources::blobs::files_below;
use crate::sources::test_app;

/// How often a process is killed.
const KILLS: u64 = 10;

#[tokio::test]
async fn killed_at_every_step_no_source_is_lost_and_no_file_left() {
    // The one in this process answers requests; those that are killed do the work.
    let app = test_app(&[]).await;
    let config = app.service.api.app.config().clone();
    let mut settings = app.process_settings();
    settings.push(("SVC__PROVIDERS__RESOLUTION__FETCH__TIMEOUT", "2s"));
    let text = "Bees dance on the comb, and the others follow what they say. ".repeat(3_000);
    app.web.page("/picture.png", Page::new("image/png", b"\x89PNG\r\n\x1a\n picture".to_vec()));
    let mut sources = Vec::new();
    for n in 0..20 {
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
        app.web.page(&path, page);
        sources.push(app.add_page(&path).await);
        sources.push(app.add_text("a.txt", &format!("{n}. {text}")).await);
    }
    // A different moment each time: while it starts, claims, fetches, reads, writes.
    for n in 0..KILLS {
        let worker = Process::spawn(program(), &settings);
        tokio::time::sleep(Duration::from_millis(400 + 330 * n)).await;
        drop(worker);
    }
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let (mut processed, mut failed) = (0, 0);
    for source in &sources {
        let seen = eventually(Duration::from_mins(4), "the source ends", async || {
            let seen = app.source(source).await;
            if ["processed", "failed"].iter().any(|end| seen["status"] == *end) {
                return Ok(seen);
            }
            Err(format!("{seen}\n{}", worker.log()))
        })
        .await;
        if seen["status"] == "processed" {
            processed += 1;
        } else {
            assert!(!seen["failure"]["message"].as_str().unwrap().is_empty(), "{seen}");
            failed += 1;
        }
    }
    println!("{processed} processed, {failed} failed after {KILLS} kills");
    assert!(processed >= 30, "{processed} processed, {failed} failed");
    drop(worker);
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap();
    let blobs = Blobs::open(&config.providers.storage).unwrap();
    okt_jobs::cleanup_files(&databases[0], &blobs, Duration::ZERO, |_| {}).await.unwrap();
    // What rows speak of is there, and nothing else is.
    let root = &config.providers.storage.root;
    let kept = files_below(root).len();
    let wanted = "SELECT count(*) FROM (SELECT id, body_sha256 FROM okt_repository.sources WHERE body_sha256 IS NOT NULL
                   UNION SELECT source_id, sha256 FROM okt_repository.source_images WHERE sha256 IS NOT NULL) AS f";
    assert_eq!(i64::try_from(kept).unwrap(), app.count(wanted).await);
    for source in &sources {
        let seen = app.get(&format!("/{source}")).await.json();
        if seen["has_stored_body"] == true {
            let path = format!("/{source}/body");
            let request = app.service.request(Method::HEAD, &app.path(&path));
            let answer = request.bearer_auth(&app.owner.token).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{source}");
        }
    }
}
