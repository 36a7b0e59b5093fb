use http::Method;
use serde_json::json;

use crate::repositories::two_databases::TwoDatabases;

#[tokio::test]
async fn a_text_is_told_what_it_names() {
    let fixture = TwoDatabases::new().await;
    let ask = async |value: &str| {
        fixture.send(&fixture.admin, Method::POST, "/api/v1/sources/classify", &json!({"value": value})).await
    };
    let found = ask("https://dx.doi.org/10.1000/ABC").await;
    assert_eq!(
        found.json(),
        json!({"resource_type": "doi", "normalized": "10.1000/abc", "url": "https://doi.org/10.1000/abc", "doi": "10.1000/abc"})
    );
    assert_eq!(ask("arXiv:2101.00001v2").await.json()["url"], "https://arxiv.org/abs/2101.00001v2");
    let refused = ask("bees").await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["errors"][0]["field"].clone()),
        (422, json!("value"))
    );
    let body = json!({"value": "10.1000/abc"});
    let refused = fixture.send(&fixture.ada, Method::POST, "/api/v1/sources/classify", &body).await;
    assert_eq!(refused.status, 403);
}
