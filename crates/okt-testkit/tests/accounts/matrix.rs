use std::fmt::Write;

use http::Method;
use okt_http::Line;
use okt_model::{JobId, RepositoryId};
use okt_testkit::accounts::{PASSWORD, access_token, api_key, give, register, repository, session, sql};
use okt_testkit::client::Answer;
use okt_testkit::golden;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

/// Nobody and a bad token have no account; the key and the client are the sysadmin's, the key for `source:read` alone
/// and the client for `user:read`.
const WHO: [&str; 10] = [
    "nobody",
    "bad token",
    "stranger",
    "viewer",
    "curator",
    "editor",
    "repoadmin",
    "sysadmin",
    "key",
    "client",
];

/// In the repository that the requests are about.
const ROLES: [&str; 4] = ["viewer", "curator", "editor", "repoadmin"];

/// What the requests are about: somebody else, who has a role to be taken away, and a job that waits to be tried again.
struct About {
    user: Uuid,
    email: String,
    repository: String,
    job: String,
    /// Unlike that of any other request.
    number: usize,
}

/// The body that gets past validation, or `{}` where that would tell nothing about the guard. `None` is no body.
fn body(line: &Line, about: &About) -> Option<Value> {
    let role = json!({"user_id": about.user, "role": "viewer", "domain": about.repository});
    Some(match (line.method.as_str(), line.path.as_str()) {
        ("GET", _)
        | (
            "POST",
            "/api/v1/auth/logout"
            | "/api/v1/admin/jobs/rescue"
            | "/api/v1/repositories/{repoID}/jobs/{jobID}/cancel"
            | "/api/v1/repositories/{repoID}/jobs/{jobID}/retry"
            | "/api/v1/repositories/{repoID}/sources/upload"
            | "/api/v1/repositories/{repoID}/sources/import"
            | "/api/v1/repositories/{repoID}/sources/{sourceID}/process"
            | "/api/v1/repositories/{repoID}/sources/{sourceID}/retry"
            | "/api/v1/repositories/{repoID}/settings/contribute-all"
            | "/api/v1/repositories/{repoID}/settings/pull-all",
        )
        | (
            "DELETE",
            "/api/v1/users/me/api-keys/{keyID}"
            | "/api/v1/users/me/grants/{grantID}"
            | "/api/v1/oauth/register/{clientID}"
            | "/api/v1/repositories/{repoID}"
            | "/api/v1/repositories/{repoID}/sources/{sourceID}"
            | "/api/v1/repositories/{repoID}/settings/contexts/{context}",
        ) => return None,
        ("POST", "/api/v1/oauth/register") => json!({"redirect_uris": ["http://127.0.0.1/callback"]}),
        ("POST", "/api/v1/auth/register") => {
            json!({"email": format!("new-{}@example.org", about.number), "password": PASSWORD})
        }
        ("POST", "/api/v1/auth/login") => json!({"email": about.email, "password": PASSWORD}),
        ("PUT", "/api/v1/oauth/register/{clientID}" | "/api/v1/users/{userID}")
        | (
            "POST",
            "/api/v1/auth/refresh"
            | "/api/v1/oauth/authorize"
            | "/api/v1/oauth/authorize/login"
            | "/api/v1/oauth/token"
            | "/api/v1/oauth/revoke",
        ) => json!({}),
        ("POST", "/api/v1/users/me/api-keys") => json!({"name": "a key", "permissions": ["source:read"]}),
        ("PUT" | "DELETE", "/api/v1/admin/users/roles") => role,
        ("POST", "/api/v1/sources/{provider}/search") => json!({"query": "bees"}),
        ("POST", "/api/v1/sources/retrieve") => {
            json!({"doi": "10.1000/182", "repository_id": about.repository})
        }
        ("POST", "/api/v1/sources/classify") => json!({"value": "10.1000/182"}),
        ("POST", "/api/v1/repositories/{repoID}/sources") => json!({"doi": "10.1000/182"}),
        ("POST", "/api/v1/promptsets") => {
            json!({"name": "Ours", "phases": {"posture": format!("Number {}", about.number)}})
        }
        ("POST", "/api/v1/repositories/{repoID}/sources/estimate") => json!({"source_ids": []}),
        ("PUT", "/api/v1/repositories/{repoID}/facts/{factID}") => json!({"status": "rejected"}),
        ("POST", "/api/v1/repositories") => json!({"name": "Another"}),
        ("PUT", "/api/v1/repositories/{repoID}") => json!({"name": "Renamed"}),
        ("PUT", "/api/v1/repositories/{repoID}/members") => json!({"user_id": about.user, "role": "editor"}),
        ("DELETE", "/api/v1/repositories/{repoID}/members") => json!({"user_id": about.user}),
        ("PUT", path) if path.starts_with("/api/v1/repositories/{repoID}/settings/") => {
            match path.rsplit('/').next().unwrap_or_default() {
                "providers" => json!({"provider": "web", "enabled": true}),
                "auto-contribute" => json!({"enabled": true}),
                "registry" => json!({"push_level": "facts"}),
                "promptsets" => json!({"accepted_promptset_hashes": []}),
                "budget" => json!({"monthly_usd": 10}),
                "stages" => json!({"synthesis": false}),
                "{context}" => json!({"description": "More of it"}),
                _ => panic!("PUT {path} is new: say in matrix.rs what to send there"),
            }
        }
        ("POST", "/api/v1/repositories/{repoID}/settings/contexts") => json!({"label": "New"}),
        ("POST", "/api/v1/repositories/{repoID}/settings/contexts/{context}/migrate") => {
            json!({"target": "Other"})
        }
        (method, path) => panic!("{method} {path} is new: say in matrix.rs what to send there"),
    })
}

fn takes_a_form(line: &Line) -> bool {
    let forms = ["authorize", "authorize/login", "token", "revoke"];
    line.method == Method::POST && forms.iter().any(|end| line.path == format!("/api/v1/oauth/{end}"))
}

fn path(line: &Line, about: &About) -> String {
    let nothing = RepositoryId::mint().to_string();
    let path = line.path.replace("{userID}", &about.user.to_string()).replace("{path}", "mcp");
    let path = path.replace("{repoID}", &about.repository).replace("{jobID}", &about.job);
    let path = path.replace("{context}", "Own");
    let path = [
        "{keyID}",
        "{grantID}",
        "{clientID}",
        "{rest}",
        "{sourceID}",
        "{imageID}",
        "{provider}",
        "{factID}",
        "{hash}",
    ]
    .iter()
    .fold(path, |path, name| path.replace(name, &nothing));
    assert!(!path.contains('{'), "{path} has a new parameter: say in matrix.rs what stands for it");
    path
}

/// Every line of the table for everybody: 401 and 403 are the guard's, anything else got past it.
#[tokio::test]
async fn who_gets_past_which_guard_is_as_committed() {
    let service = TestService::product(&[]).await;
    let repository = repository(&service).await.to_string();
    let sysadmin = register(&service, "sysadmin").await;
    let other = register(&service, "other").await;
    let mut people = vec![("stranger", register(&service, "stranger").await.id), ("sysadmin", sysadmin.id)];
    for role in ROLES {
        people.push((role, register(&service, role).await.id));
    }
    let (_, key) = api_key(&service, &sysadmin, &["source:read"]).await;
    let client = access_token(&service, sysadmin.id, "user:read").await;
    let mut about = About { user: other.id, email: other.email, repository, job: String::new(), number: 0 };

    let routes = okt_api::table(&service.api);
    let mut lines: Vec<_> = routes.lines().to_vec();
    lines.sort_by_key(|line| (line.path.clone(), line.method.to_string()));
    let mut matrix = WHO.map(|who| format!("{who:>9}")).join(" ") + "\n";
    for line in &lines {
        for who in WHO {
            // Nothing that one request does may be felt by the next.
            if line.path.contains("{repoID}") {
                put_back(&service, &about.repository, &people).await;
                about.job = job_in(&service, &about.repository).await;
            }
            give(&service, about.user, &about.repository, "viewer").await;
            about.number += 1;
            let token = match who {
                "nobody" => None,
                "bad token" => Some(session(&service, sysadmin.id).await.replace('.', ".e")),
                "key" => Some(key.clone()),
                "client" => Some(client.clone()),
                who => {
                    let (_, id) = people.iter().find(|(name, _)| *name == who).unwrap();
                    Some(session(&service, *id).await)
                }
            };
            let status = ask(&service, line, &about, token).await;
            write!(matrix, "{status:>9} ").unwrap();
        }
        writeln!(matrix, " {:6} {} — {}", line.method.as_str(), line.path, line.guard).unwrap();
    }
    golden::check("crates/okt-api/matrix.txt", &matrix);
}

/// The repository is there, with its people, two contexts of its own and nothing else.
async fn put_back(service: &TestService, repository: &str, people: &[(&str, Uuid)]) {
    let members = people.iter().filter(|(role, _)| ROLES.contains(role));
    let members: Vec<String> =
        members.map(|(role, person)| format!("('{person}', '{repository}', '{role}')")).collect();
    let statements = format!(
        "UPDATE okt_system.repositories SET state = 'active', untidy_since = NULL WHERE id = '{repository}';
         DELETE FROM okt_system.role_assignments WHERE domain = '{repository}';
         INSERT INTO okt_system.role_assignments VALUES {};
         DELETE FROM okt_repository.contexts WHERE repository_id = '{repository}';
         DELETE FROM okt_repository.closed WHERE repository_id = '{repository}';
         INSERT INTO okt_repository.contexts (repository_id, label, description)
         VALUES ('{repository}', 'Own', ''), ('{repository}', 'Other', '')",
        members.join(", ")
    );
    sql(service, &statements).await;
}

/// A job that can be read, cancelled and tried again.
async fn job_in(service: &TestService, repository: &str) -> String {
    let id = JobId::mint().to_string();
    let insert = format!(
        "INSERT INTO okt_tasks.jobs
                (id, repository_id, kind, state, priority, turn, payload, max_attempts, scheduled_at)
         VALUES ('{id}', '{repository}', 'nothing', 'retryable', 0, 0, '{{}}', 10, now() + interval '1 hour')"
    );
    sql(service, &insert).await;
    id
}

async fn ask(service: &TestService, line: &Line, about: &About, token: Option<String>) -> u16 {
    let mut request = service.request(line.method.clone(), &path(line, about));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request = match body(line, about) {
        Some(body) if takes_a_form(line) => {
            request.header("content-type", "application/x-www-form-urlencoded").body(format!("said={body}"))
        }
        Some(body) => request.json(&body),
        None => request,
    };
    if line.path.ends_with("/events") {
        // A stream that is let through has no end.
        return request.send().await.unwrap().status().as_u16();
    }
    let answer = Answer::of(request).await;
    let unset = answer.status == 503 && answer.problem() == "not_configured";
    assert!(unset || !answer.status.is_server_error(), "{} {}: {answer:?}", line.method, line.path);
    answer.status.as_u16()
}

#[test]
#[should_panic(expected = "POST /api/v1/novelties is new")]
fn a_line_that_the_matrix_does_not_know_is_noticed() {
    let line = Line {
        method: Method::POST,
        path: "/api/v1/novelties".to_owned(),
        guard: okt_http::Guard::Authenticated,
    };
    let (email, repository, job) = (String::new(), String::new(), String::new());
    body(&line, &About { user: Uuid::nil(), email, repository, job, number: 0 });
}
