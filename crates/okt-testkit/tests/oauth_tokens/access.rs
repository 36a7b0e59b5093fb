use okt_testkit::accounts::register;
use okt_testkit::oauth::{client, tokens};
use okt_testkit::served::TestService;

#[tokio::test]
async fn a_token_does_what_its_scope_says_and_nothing_else() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "ada").await;
    let client = client(&service).await;
    let tokens = tokens(&service, &client, &admin.email, "user:read").await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(service.get_as(access, "/api/v1/admin/users").await.status, 200);
    assert_eq!(service.get_as(access, "/api/v1/admin/audit").await.status, 403);
}
