use okt_testkit::db::run;
use okt_testkit::served::TestService;
use serde_json::Value;

async fn with_notes(count: u32) -> TestService {
    let service = TestService::notes(&[]).await;
    let insert = format!("INSERT INTO notes (text) SELECT 'note ' || i FROM generate_series(1, {count}) i");
    run(&mut service.database.connect().await, &insert).await;
    service
}

fn ids(page: &Value) -> Vec<i64> {
    page["data"].as_array().unwrap().iter().map(|note| note["id"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_overlap() {
    let service = with_notes(120).await;
    let mut seen = Vec::new();
    let mut path = "/notes?limit=50".to_owned();
    for expected in [50, 50, 20] {
        let answer = service.get_as("ada", &path).await;
        let page = answer.json();
        assert_eq!(ids(&page).len(), expected);
        seen.extend(ids(&page));
        // A row that appears behind us does not shift what is ahead.
        run(&mut service.database.connect().await, "UPDATE notes SET text = text || '!' WHERE id < 10").await;
        match page["next_cursor"].as_str() {
            Some(cursor) => {
                path = format!("/notes?limit=50&cursor={cursor}");
                assert_eq!(answer.header("link"), format!("<{path}>; rel=\"next\""));
            }
            None => assert_eq!(answer.header("link"), ""),
        }
    }
    assert_eq!(seen, (1..=120).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_page_that_fits_exactly_is_the_last() {
    let service = with_notes(50).await;
    let page = service.get_as("ada", "/notes").await.json();
    assert_eq!(ids(&page).len(), 50);
    assert_eq!(page["next_cursor"], Value::Null);
}

#[tokio::test]
async fn limits_outside_of_1_to_200_are_refused() {
    let service = with_notes(1).await;
    for limit in ["0", "201", "-1", "ten", "", "1.5", "99999999999999999999"] {
        let answer = service.get_as("ada", &format!("/notes?limit={limit}")).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{limit}");
        assert_eq!(answer.json()["errors"][0]["field"], "limit");
    }
    for limit in [1, 200] {
        assert_eq!(service.get_as("ada", &format!("/notes?limit={limit}")).await.status, 200);
    }
}

#[tokio::test]
async fn a_cursor_is_bound_to_its_list_and_can_not_be_made_up() {
    let service = with_notes(3).await;
    let page = service.get_as("ada", "/notes?limit=1&kind=a&sort=b").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let status = async |query: &str| service.get_as("ada", &format!("/notes?{query}")).await;

    assert_eq!(
        status(&format!("sort=b&kind=a&cursor={cursor}")).await.status,
        200,
        "the order of filters is free"
    );
    for query in [
        format!("kind=b&sort=b&cursor={cursor}"),
        format!("cursor={cursor}"),
        format!("kind=a&sort=b&cursor={}", &cursor[1..]),
        format!("kind=a&sort=b&cursor=A{}", &cursor[1..]),
        "kind=a&sort=b&cursor=".to_owned(),
        "kind=a&sort=b&cursor=MQ".to_owned(),
        "kind=a&sort=b&cursor=%ff%fe".to_owned(),
    ] {
        let answer = status(&query).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "bad_cursor"), "{query}");
    }
}
