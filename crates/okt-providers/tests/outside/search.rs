//! Search services, stood in for by servers that speak their protocols.

use okt_config::{Config, SearchProvider, WebSearchKind};
use okt_providers::search::{Search, SearchError, SearchPage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::server::{Server, any_port, client, ok};

const HOME: [u8; 4] = [127, 0, 0, 1];

fn web(kind: WebSearchKind, server: &Server) -> Search {
    let mut config = Config::default();
    let web = &mut config.providers.search.web;
    (web.kind, web.base_url, web.api_key) =
        (kind, Some(server.url("/").parse().unwrap()), "key".to_owned().into());
    Search::new(&config, &client(&[]))
}

fn academic(server: &Server) -> Search {
    let mut config = Config::default();
    let academic = &mut config.providers.search.academic;
    academic.base_url = server.url("/").parse().unwrap();
    academic.email = "okt@example.org".into();
    academic.api_key = "secret".to_owned().into();
    Search::new(&config, &client(&[]))
}

fn shown(page: &SearchPage) -> Value {
    json!(page.hits)
}

/// A cursor's inside, which callers do not look at.
async fn next(search: &Search, provider: SearchProvider, limit: usize, page: &SearchPage) -> SearchPage {
    search.search(provider, "bees & wasps", limit, page.next_cursor.as_deref()).await.unwrap()
}

#[tokio::test]
async fn serper_is_asked_page_by_page() {
    let server = Server::serve(any_port(HOME), |head, mut socket| async move {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        socket.read_exact(&mut body).await.unwrap();
        let order: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&order["q"], &order["num"]), (&json!("bees & wasps"), &json!(2)));
        let organic = match order["page"].as_u64().unwrap() {
            1 => json!([
                { "title": "Bees", "link": "https://a.test/1", "snippet": "About <b>bees</b>\u{1b}.", "date": "Jan 31, 2024" },
                { "title": "<script>x</script>", "link": "https://doi.org/10.1000/Bees", "snippet": "y", "date": "3 days ago" },
            ]),
            2 => json!([
                { "title": "A", "link": "javascript:alert(1)" },
                { "title": "B", "link": "file:///etc/passwd" },
                { "title": "C", "link": "https://user:pw@a.test/" },
                { "title": "D", "link": "https://a.test/2" },
            ]),
            _ => json!([]),
        };
        let _ = socket.write_all(&ok(&json!({ "organic": organic }).to_string())).await;
    })
    .await;
    let search = web(WebSearchKind::Serper, &server);
    let first = search.search(SearchProvider::Web, "bees & wasps", 2, None).await.unwrap();
    assert_eq!(
        shown(&first),
        json!([
            { "title": "Bees", "url": "https://a.test/1", "snippet": "About bees .", "doi": null, "published_at": "2024-01-31",
              "retracted": false },
            { "title": "doi.org", "url": "https://doi.org/10.1000/Bees", "snippet": "y", "doi": "10.1000/bees",
              "published_at": null, "retracted": false },
        ])
    );
    let second = next(&search, SearchProvider::Web, 2, &first).await;
    assert_eq!(second.hits.iter().map(|hit| hit.url.as_str()).collect::<Vec<_>>(), ["https://a.test/2"]);
    let third = next(&search, SearchProvider::Web, 2, &second).await;
    assert_eq!((third.hits.len(), third.next_cursor), (0, None));
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /search http/1.1\r\n") && head.contains("x-api-key: key\r\n"), "{head}");
}

#[tokio::test]
async fn brave_is_asked_with_its_header_and_offset() {
    let server = Server::start(any_port(HOME), |head| {
        assert!(head.to_ascii_lowercase().contains("x-subscription-token: key\r\n"), "{head}");
        let more = head.starts_with("GET /res/v1/web/search?q=bees+%26+wasps&count=20&offset=0 ");
        assert!(more || head.starts_with("GET /res/v1/web/search?q=bees+%26+wasps&count=20&offset=1 "), "{head}");
        let result = json!({ "title": "Bees", "url": "https://a.test/", "description": "<strong>B</strong>&amp;C",
            "page_age": "2024-01-31T10:00:00" });
        let answer = json!({ "query": { "more_results_available": more }, "web": { "results": [result] } });
        ok(&answer.to_string())
    })
    .await;
    let search = web(WebSearchKind::Brave, &server);
    let first = search.search(SearchProvider::Web, "bees & wasps", 50, None).await.unwrap();
    assert_eq!(
        shown(&first),
        json!([{ "title": "Bees", "url": "https://a.test/", "snippet": "B &C", "doi": null, "published_at": "2024-01-31",
                 "retracted": false }])
    );
    assert_eq!(next(&search, SearchProvider::Web, 50, &first).await.next_cursor, None);
}

#[tokio::test]
async fn searxng_pages_are_cut_to_the_limit_and_nothing_is_lost() {
    let server = Server::start(any_port(HOME), |head| {
        let page: u32 = head.split("pageno=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(head.starts_with("GET /search?q=bees+%26+wasps&format=json&pageno="), "{head}");
        let count = [3, 2, 0][page as usize - 1];
        let results: Vec<_> = (0..count)
            .map(|n| json!({ "title": "T", "url": format!("https://a.test/{page}/{n}"), "content": null }))
            .collect();
        ok(&json!({ "results": results }).to_string())
    })
    .await;
    let search = web(WebSearchKind::Searxng, &server);
    let mut page = search.search(SearchProvider::Web, "bees & wasps", 2, None).await.unwrap();
    let mut seen: Vec<String> = Vec::new();
    loop {
        assert!(page.hits.len() <= 2);
        seen.extend(page.hits.iter().map(|hit| hit.url.path().to_owned()));
        if page.next_cursor.is_none() {
            break;
        }
        page = next(&search, SearchProvider::Web, 2, &page).await;
    }
    assert_eq!(seen, ["/1/0", "/1/1", "/1/2", "/2/0", "/2/1"]);
}

#[tokio::test]
async fn works_have_their_abstracts_put_together() {
    let server = Server::start(any_port(HOME), |head| {
        assert!(head.starts_with("GET /works?search=bees+%26+wasps&per-page=2&cursor="), "{head}");
        assert!(head.contains("&mailto=okt%40example.org&api_key=secret "), "{head}");
        if head.contains("cursor=IlsxLj%3D&") {
            return ok(r#"{"meta": {"next_cursor": "x"}, "results": []}"#);
        }
        assert!(head.contains("cursor=*&"), "{head}");
        let full = json!({
            "id": "https://openalex.org/W1", "doi": "https://doi.org/10.1000/BEES", "display_name": "On <i>Bees</i>",
            "publication_date": "2024-01-31", "is_retracted": true,
            "best_oa_location": { "landing_page_url": null, "pdf_url": "https://a.test/1.pdf" },
            "primary_location": { "landing_page_url": "https://b.test/1", "pdf_url": null },
            "abstract_inverted_index": { "dance": [1, 3], "Bees": [0], "and": [2], "far": [999_999_999] },
        });
        let bare = json!({
            "id": "https://openalex.org/W2", "doi": null, "display_name": null, "publication_date": null,
            "best_oa_location": null, "primary_location": null, "abstract_inverted_index": null,
        });
        ok(&json!({ "meta": { "next_cursor": "IlsxLj=" }, "results": [full, bare] }).to_string())
    })
    .await;
    let search = academic(&server);
    let page = search.search(SearchProvider::Academic, "bees & wasps", 2, None).await.unwrap();
    assert_eq!(
        shown(&page),
        json!([
            { "title": "On Bees", "url": "https://a.test/1.pdf", "snippet": "Bees dance and dance", "doi": "10.1000/bees",
              "published_at": "2024-01-31", "retracted": true },
            { "title": "openalex.org", "url": "https://openalex.org/W2", "snippet": "", "doi": null, "published_at": null,
              "retracted": false },
        ])
    );
    let last = next(&search, SearchProvider::Academic, 2, &page).await;
    assert_eq!((last.hits.len(), last.next_cursor), (0, None));
}

#[tokio::test]
async fn a_work_is_looked_up_by_its_doi() {
    let asked = "GET /works?filter=doi%3A10.1000%2Fbees%281%29&per-page=1&select=doi%2Cis_retracted&mailto=okt%40example.org\
                 &api_key=secret ";
    for (results, expected) in [
        (json!([{ "doi": "https://doi.org/10.1000/BEES(1)", "is_retracted": true }]), Some(true)),
        (json!([{ "doi": "https://doi.org/10.1000/bees(1)", "is_retracted": false }]), Some(false)),
        (json!([{ "doi": "https://doi.org/10.1000/bees(1)", "is_retracted": null }]), None),
        (json!([{ "doi": "https://doi.org/10.1000/wasps", "is_retracted": true }]), None),
        (json!([]), None),
    ] {
        let server = Server::start(any_port(HOME), move |head| {
            assert!(head.starts_with(asked), "{head}");
            ok(&json!({ "results": results }).to_string())
        })
        .await;
        let found = academic(&server).is_retracted("10.1000/bees(1)").await.unwrap();
        assert_eq!(found, expected);
    }
    // Commas and bars part values there, so such a DOI can't be asked for.
    let server = Server::start(any_port(HOME), |head| panic!("{head}")).await;
    for doi in ["10.1000/a,b", "10.1000/a|10.1000/b"] {
        assert_eq!(academic(&server).is_retracted(doi).await.unwrap(), None);
    }
    assert_eq!(server.connections().await, 0);
    let silent = Server::start(any_port(HOME), |_| Vec::new()).await;
    assert!(academic(&silent).is_retracted("10.1000/bees").await.is_err());
}

#[tokio::test]
async fn a_cursor_is_only_good_where_it_came_from() {
    let server = Server::start(any_port(HOME), |_| ok(r#"{"results": [{"url": "https://a.test/"}]}"#)).await;
    let search = web(WebSearchKind::Searxng, &server);
    let page = search.search(SearchProvider::Web, "bees", 1, None).await.unwrap();
    let cursor = page.next_cursor.unwrap();
    assert!(!cursor.contains(':'));
    for bad in ["", "2", "!", "d2ViOg", "d2ViOjE", "d2ViOjk5OTk5LjA", "d2ViOjEuLTE"] {
        let error = search.search(SearchProvider::Web, "bees", 1, Some(bad)).await.unwrap_err();
        assert!(matches!(error, SearchError::Cursor), "{bad}: {error:?}");
    }
    let error = search.search(SearchProvider::Academic, "bees", 1, Some(&cursor)).await.unwrap_err();
    assert!(matches!(error, SearchError::Cursor), "{error:?}");
    assert_eq!(server.connections().await, 1);
}

#[tokio::test]
async fn what_goes_wrong_is_told_apart_and_no_key_is_repeated() {
    let silent = Search::new(&Config::default(), &client(&[]));
    assert!(!silent.is_configured(SearchProvider::Web) && silent.is_configured(SearchProvider::Academic));
    let error = silent.search(SearchProvider::Web, "bees", 1, None).await.unwrap_err();
    assert!(matches!(error, SearchError::NotConfigured(_)), "{error:?}");

    for (answer, expected) in [
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "refused with 403"),
        ("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", "not before 7s"),
        ("HTTP/1.1 500 Ill\r\ncontent-length: 0\r\n\r\n", "silent"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno", "silent"),
        ("", "silent"),
    ] {
        let server = Server::start(any_port(HOME), |_| answer.into()).await;
        let error = academic(&server).search(SearchProvider::Academic, "bees", 1, None).await.unwrap_err();
        let told = match &error {
            SearchError::Refused { status, .. } => format!("refused with {status}"),
            SearchError::RateLimited { retry_after, .. } => format!("not before {:?}", retry_after.unwrap()),
            SearchError::Silent { .. } => "silent".into(),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected);
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    }
}

#[tokio::test]
async fn a_service_that_redirects_inside_is_not_followed() {
    let inside = Server::start(any_port(HOME), |_| ok("{}")).await;
    let to = inside.url("/");
    let server = Server::start(any_port(HOME), move |_| crate::server::moved(302, &to)).await;
    let error = academic(&server).search(SearchProvider::Academic, "bees", 1, None).await.unwrap_err();
    assert!(matches!(error, SearchError::Refused { status: 302, .. }), "{error:?}");
    assert_eq!(inside.connections().await, 0);
}
