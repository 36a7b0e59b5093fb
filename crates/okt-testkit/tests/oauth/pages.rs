use okt_testkit::accounts::register;
use okt_testkit::oauth::{Browser, client, exchange, parameter, request};
use okt_testkit::served::TestService;

#[tokio::test]
async fn a_person_lets_a_client_in_and_it_acts_for_them() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let client = client(&service).await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client, "read")).await;
    assert_eq!(page.status, 200, "{page:?}");
    let before = browser.cookie.clone();
    let page = browser.sign_in(&service, &page, &ada.email).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_ne!(browser.cookie, before, "signing in starts anew");
    assert!(page.text.contains("See everything that you can see"), "{}", page.text);
    let answer = browser.decide(&service, &page, "allow").await;
    assert_eq!(parameter(&answer, "state").as_deref(), Some("a state & more"));
    assert_eq!(parameter(&answer, "iss").as_ref(), Some(&service.url));
    let tokens = exchange(&service, &client, &parameter(&answer, "code").unwrap()).await.json();
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(service.get_as(access, "/api/v1/users/me").await.json()["email"], ada.email);
}
