use okt_testkit::accounts::{count, register, sql};
use okt_testkit::served::TestService;
use serde_json::json;

use crate::repositories::two_databases::REPOSITORIES;

const ALL: &str = "SELECT count(*) FROM okt_system.repositories WHERE state = 'active'";

#[tokio::test]
async fn the_first_boot_makes_a_repository_and_the_first_sysadmin_has_it() {
    let service = TestService::product(&[]).await;
    service.api.app.bootstrap().await.unwrap();
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 1);
    let admin = register(&service, "admin").await;
    let ada = register(&service, "ada").await;
    let list = service.get_as(&admin.token, REPOSITORIES).await.json();
    let starter = &list["data"][0];
    assert_eq!((&starter["slug"], &starter["owner_id"]), (&json!("starter"), &json!(admin.id)));
    assert_eq!(starter["roles"], json!(["repoadmin"]));
    assert_eq!(service.get_as(&ada.token, REPOSITORIES).await.json()["data"], json!([]));
}

#[tokio::test]
async fn many_processes_that_boot_at_once_make_one() {
    let service = TestService::product(&[]).await;
    let boots = (0..10).map(|_| service.api.app.bootstrap());
    for booted in futures_util::future::join_all(boots).await {
        booted.unwrap();
    }
    assert_eq!(count(&service, ALL).await, 1);
}

#[tokio::test]
async fn a_starter_that_was_deleted_stays_away() {
    let service = TestService::product(&[]).await;
    service.api.app.bootstrap().await.unwrap();
    let admin = register(&service, "admin").await;
    let starter = format!("{REPOSITORIES}/starter");
    let request = service.request(http::Method::DELETE, &starter).bearer_auth(&admin.token);
    assert_eq!(okt_testkit::client::Answer::of(request).await.status, 204);
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 0);
}

#[tokio::test]
async fn the_configured_administrator_has_it_from_the_start() {
    let service = TestService::product(&[
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL", "root@example.org"),
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", "correct horse"),
        ("SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME", "Root"),
        ("SVC__BOOTSTRAP__DEFAULT_ADMIN", "true"),
    ])
    .await;
    service.api.app.bootstrap().await.unwrap();
    let root = okt_testkit::accounts::login(&service, "root@example.org").await;
    let list = service.get_as(&root.token, REPOSITORIES).await.json();
    assert_eq!(list["data"][0]["owner_id"], json!(root.id));
    assert_eq!(list["data"][0]["roles"], json!(["repoadmin"]));
}

#[tokio::test]
async fn it_can_be_switched_off_and_comes_only_to_an_empty_table() {
    let service = TestService::product(&[("SVC__BOOTSTRAP__DEFAULT_REPOSITORY", "false")]).await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 0);

    let service = TestService::product(&[]).await;
    okt_testkit::accounts::repository(&service).await;
    sql(&service, "UPDATE okt_system.repositories SET state = 'deleted'").await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 0);
}

/// Somebody registers while the starter is still being furnished, or it never was.
#[tokio::test]
async fn a_starter_that_was_cut_off_is_made_by_the_next_boot_and_found_by_its_owner() {
    let service = TestService::product(&[]).await;
    okt_testkit::accounts::repository(&service).await;
    let creating = "UPDATE okt_system.repositories SET state = 'creating', untidy_since = now()";
    sql(&service, creating).await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 0, "somebody is just making it");
    let admin = register(&service, "admin").await;
    let owned = format!("SELECT count(*) FROM okt_system.repositories WHERE owner_id = '{}'", admin.id);
    assert_eq!(count(&service, &owned).await, 1);
    let told =
        "SELECT count(*) FROM okt_system.audit WHERE action = 'role.assigned' AND repository_id IS NOT NULL";
    assert_eq!(count(&service, told).await, 1);
    sql(&service, "UPDATE okt_system.repositories SET untidy_since = now() - interval '3 minutes'").await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!(count(&service, ALL).await, 1);
}
