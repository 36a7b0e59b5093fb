//! Originals and images, handed out so that no browser runs what strangers wrote.

use http::Method;
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::web::{Page, Web};
use serde_json::json;

use crate::sources::test_app;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and what a picture is made of";

async fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = app.service.request(Method::GET, &app.path(path)).bearer_auth(&app.owner.token);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request).await
}

#[tokio::test]
async fn an_original_comes_whole_or_in_parts_and_is_never_run() {
    let mut app = test_app(&[]).await;
    let page =
        "<title>Bad</title><script>alert(1)</script><p>Bees dance on the comb. Others follow the dance.</p>";
    let html = app.upload("b\u{e4}d x.html", "text/html", page.as_bytes()).await;
    app.work().await;
    let source = html.json()["source_id"].as_str().unwrap().to_owned();
    app.settled(&source).await;
    let path = format!("/{source}/body");
    let whole = get(&app, &path, &[]).await;
    assert_eq!((whole.status.as_u16(), &*whole.text), (200, page));
    assert_eq!(whole.header("content-type"), "application/octet-stream");
    assert!(whole.header("content-disposition").starts_with("attachment; filename="), "{whole:?}");
    assert!(whole.header("content-disposition").ends_with("filename*=UTF-8''b%C3%A4d%20x.html"), "{whole:?}");
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert!(whole.header("content-security-policy").contains("sandbox"), "{whole:?}");
    assert_eq!(whole.header("content-length"), page.len().to_string());
    let etag = whole.header("etag").to_owned();

    let part = get(&app, &path, &[("range", "bytes=7-9")]).await;
    assert_eq!((part.status.as_u16(), &*part.text), (206, "Bad"));
    assert_eq!(part.header("content-range"), format!("bytes 7-9/{}", page.len()));
    let last = get(&app, &path, &[("range", "bytes=-4"), ("if-range", &etag)]).await;
    assert_eq!((last.status.as_u16(), &*last.text), (206, "</p>"));
    assert_eq!(get(&app, &path, &[("range", "bytes=7-9"), ("if-range", "\"old\"")]).await.status, 200);
    let beyond = get(&app, &path, &[("range", "bytes=9999-")]).await;
    assert_eq!((beyond.status.as_u16(), &*beyond.problem()), (416, "bad_range"));
    let same = get(&app, &path, &[("if-none-match", &etag)]).await;
    assert_eq!((same.status.as_u16(), &*same.text), (304, ""));
}

#[tokio::test]
async fn images_of_a_page_are_fetched_and_only_images() {
    let mut app = test_app(&[]).await;
    let inside = Web::start().await;
    inside.page("/x.png", Page::new("image/png", PNG));
    app.web.page("/bee.png", Page::new("image/png", PNG));
    app.web.page("/bad.png", Page::new("image/png", "<svg onload=alert(1)>"));
    let text = "Bees dance on the comb, and the others follow what they say. ".repeat(20);
    let page = format!(
        "<title>Bees</title><article><h1>Bees</h1><p>{text}</p><img src=/bee.png alt='A bee'><p>{text}</p>\
         <img src='/bad.png'><img src='{}'><p>{text}</p></article>",
        inside.url("/x.png")
    );
    app.web.page("/bees", Page::html(page));
    let source = app.add_page("/bees").await;
    app.work().await;
    let seen = app.settled(&source).await;
    let images = seen["images"].as_array().unwrap();
    let image = images.iter().find(|image| image["url"] == app.web.url("/bee.png")).expect("the image");
    assert_eq!(
        (&image["alt_text"], &image["content_type"], &image["stored"], &image["kind"]),
        (&json!("A bee"), &json!("image/png"), &json!(true), &json!("inline")),
        "{seen}"
    );
    assert!(
        images.iter().filter(|other| *other != image).all(|other| other["stored"] == false),
        "{images:?}"
    );
    let request = app
        .service
        .request(Method::GET, &app.path(&format!("/{source}/images/{}", image["id"].as_str().unwrap())));
    let answer = request.bearer_auth(&app.owner.token).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(answer.headers()["content-disposition"], "inline");
    assert_eq!(&*answer.bytes().await.unwrap(), PNG);
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
    let other = images.iter().find(|image| image["stored"] == false).expect("one that was not to be had");
    let missing = get(&app, &format!("/{source}/images/{}", other["id"].as_str().unwrap()), &[]).await;
    assert_eq!(missing.status, 404);
    assert_eq!(get(&app, &format!("/{source}/images/{}", uuid::Uuid::nil()), &[]).await.status, 404);
}
