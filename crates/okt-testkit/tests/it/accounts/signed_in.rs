//! Where somebody is signed in.

use http::Method;
use okt_testkit::accounts::{PASSWORD, Person, access_token, count, login, refresh, register, send, sql};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::fields;

const SESSIONS: &str = "/api/v1/users/me/sessions";
const ME: &str = "/api/v1/users/me";

async fn list(service: &TestService, token: &str) -> Vec<Value> {
    let answer = service.get_as(token, SESSIONS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["data"].as_array().unwrap().clone()
}

async fn end(service: &TestService, person: &Person, id: &str) -> Answer {
    let path = format!("{SESSIONS}/{id}");
    Answer::of(service.request(Method::DELETE, &path).bearer_auth(&person.token)).await
}

#[tokio::test]
async fn people_see_their_sessions_and_no_others() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    access_token(&service, ada.id, "read").await;
    let body = json!({"email": ada.email, "password": PASSWORD});
    let agent = "Phone/1.0 \u{202e}(evil)".replace('\u{202e}', "");
    let phone = service.request(Method::POST, "/api/v1/auth/login").header("user-agent", &agent).json(&body);
    let phone = Person::of(&Answer::of(phone).await);

    let sessions = list(&service, &phone.token).await;
    assert_eq!(sessions.len(), 2, "a client's is no session of a person's: {sessions:?}");
    for session in &sessions {
        let all = ["address", "created_at", "current", "expires_at", "id", "last_used_at", "user_agent"];
        assert_eq!(fields(session), all);
        assert_eq!(session["address"], "127.0.0.1");
    }
    let current: Vec<_> = sessions.iter().map(|session| session["current"].as_bool().unwrap()).collect();
    assert_eq!(current, [false, true], "oldest first");
    assert_eq!(sessions[1]["user_agent"], agent);
    assert_eq!(list(&service, &bob.token).await.len(), 1);

    let first = service.get_as(&ada.token, &format!("{SESSIONS}?limit=1")).await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = service.get_as(&ada.token, &format!("{SESSIONS}?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&first["data"][0]["id"], &rest["data"][0]["id"]), (&sessions[0]["id"], &sessions[1]["id"]));
}

#[tokio::test]
async fn a_session_that_is_ended_stops_at_once_on_every_process() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let lost = login(&beside, &ada.email).await;
    access_token(&service, ada.id, "read").await;
    let id = list(&service, &lost.token).await[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(end(&service, &bob, &id).await.status, 404, "another's");
    assert_eq!(beside.get_as(&lost.token, ME).await.status, 200);

    assert_eq!(end(&service, &ada, &id).await.status, 204);
    for process in [&service, &beside] {
        assert_eq!(process.get_as(&lost.token, ME).await.status, 401);
        assert_eq!(process.get_as(&ada.token, ME).await.status, 200);
    }
    assert_eq!(refresh(&service, &lost.refresh).await.status, 401);
    assert_eq!(list(&service, &ada.token).await.len(), 1);
    let grant = "SELECT id::text FROM okt_system.oauth_grants";
    let grant: String =
        sqlx::query_scalar(grant).fetch_one(&mut service.database.connect().await).await.unwrap();
    for gone in [id.as_str(), &grant, &Uuid::nil().to_string(), "nonsense"] {
        assert_eq!(end(&service, &ada, gone).await.problem(), "not_found", "{gone}");
    }
    let audited = "SELECT count(*) FROM okt_system.audit WHERE action = 'session.ended'";
    assert_eq!(count(&service, audited).await, 1);

    let own = list(&service, &ada.token).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(end(&service, &ada, &own).await.status, 204, "one's own is signing out");
    assert_eq!(service.get_as(&ada.token, ME).await.status, 401);
}

#[tokio::test]
async fn the_use_of_a_session_is_noted_every_few_minutes() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let writes = "SELECT count(*) FROM okt_system.sessions WHERE last_used_at IS NOT NULL";
    let used = async || list(&service, &ada.token).await[0]["last_used_at"].as_str().unwrap().to_owned();
    let before = used().await;
    assert_eq!((used().await, count(&service, writes).await), (before.clone(), 0), "not with every request");
    sql(&service, "UPDATE okt_system.sessions SET created_at = created_at - interval '6 minutes'").await;
    assert!(used().await > before);
    let noted = used().await;
    assert_eq!(send(&service, &ada.token, Method::GET, ME, &json!({})).await.status, 200);
    assert_eq!((used().await, count(&service, writes).await), (noted, 1));
}
