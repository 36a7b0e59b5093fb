use std::fmt::Write;

use http::Method;
use okt_http::{Guard, Line, LineKind};
use okt_model::{JobId, RepositoryId};
use okt_testkit::accounts::{
    PASSWORD, Person, access_token, api_key, give, register, repository, session, sql,
};
use okt_testkit::client::Answer;
use okt_testkit::golden;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

/// Nobody and a bad token have no account; the key and the client are the sysadmin's, the key for `source:read` alone
/// and the client for `user:read`. The able ones may do what the line asks for and nothing else. The neighbour runs another
/// repository, and asks there for what is in this one; where nothing is named but the repository, for this one.
const WHO: [&str; 13] = [
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
    "able key",
    "able client",
    "neighbour",
];

/// In the repository that the requests are about.
const ROLES: [&str; 4] = ["viewer", "curator", "editor", "repoadmin"];

/// What the requests are about: somebody else, who has a role to be taken away, and a job that waits to be tried again.
struct About {
    user: Uuid,
    email: String,
    repository: String,
    job: String,
    /// In the repository. Others are asked about what is nowhere, which tells as much of the guard and changes nothing.
    source: Option<Uuid>,
    /// For the neighbour: its own.
    elsewhere: Option<String>,
    /// Unlike that of any other request.
    number: usize,
}

/// The body that gets past validation, or `{}` where that would tell nothing about the guard. `None` is no body.
fn body(line: &Line, about: &About) -> Option<Value> {
    let role = json!({"user_id": about.user, "role": "viewer", "domain": about.repository});
    // A service is asked in its own words; what it says to these tells as much of the guard.
    if line.kind == LineKind::Service {
        return Some(json!({}));
    }
    let (method, path) = (method(line), line.path.as_str());
    if takes_none(method.as_str(), path) {
        return None;
    }
    Some(match (method.as_str(), path) {
        ("POST", "/api/v1/oauth/register") => json!({"redirect_uris": ["http://127.0.0.1/callback"]}),
        ("POST", "/api/v1/auth/register") => {
            json!({"email": format!("new-{}@example.org", about.number), "password": PASSWORD})
        }
        ("POST", "/api/v1/repositories/{repoID}/invitations") => {
            json!({"email": format!("new-{}@example.org", about.number), "role": "viewer"})
        }
        ("POST", "/api/v1/invitations/accept") => json!({"secret": "okti_none"}),
        ("POST", "/api/v1/auth/login") => json!({"email": about.email, "password": PASSWORD}),
        ("PUT", "/api/v1/oauth/register/{clientID}" | "/api/v1/users/{userID}")
        | (
            "POST",
            "/api/v1/auth/refresh"
            | "/api/v1/users/me/password"
            | "/api/v1/oauth/authorize"
            | "/api/v1/oauth/authorize/login"
            | "/api/v1/oauth/token"
            | "/api/v1/oauth/revoke",
        ) => json!({}),
        ("POST", "/api/v1/users/me/api-keys") => json!({"name": "a key", "permissions": ["source:read"]}),
        ("PUT" | "DELETE", "/api/v1/admin/users/roles") => role,
        ("PUT", "/api/v1/admin/users/{userID}/status") => json!({"status": "active"}),
        ("POST", "/api/v1/sources/{provider}/search" | "/api/v1/repositories/{repoID}/sources/search") => {
            json!({"query": "bees"})
        }
        ("POST", "/api/v1/repositories/{repoID}/investigations") => json!({"title": "Bees"}),
        ("PUT", "/api/v1/repositories/{repoID}/investigations/{investigationID}") => {
            json!({"title": "Wasps"})
        }
        ("POST", "/api/v1/repositories/{repoID}/investigations/{investigationID}/sources") => {
            json!({"source_id": RepositoryId::mint()})
        }
        ("POST", "/api/v1/repositories/{repoID}/reports") => {
            json!({"title": "Bees", "body_markdown": "Bees dance."})
        }
        ("PUT", "/api/v1/repositories/{repoID}/reports/{reportID}") => json!({"title": "Wasps"}),
        ("PUT", "/api/v1/repositories/{repoID}/reports/{reportID}/annotations/{n}") => {
            json!({"posture": "related"})
        }
        ("POST", "/api/v1/repositories/{repoID}/evidence") => json!({"claim": "Bees dance."}),
        ("POST", "/api/v1/repositories/{repoID}/check") => json!({"text": "Bees dance."}),
        ("POST", "/api/v1/sources/retrieve") => {
            json!({"doi": "10.1000/182", "repository_id": about.repository})
        }
        ("POST", "/api/v1/sources/classify") => json!({"value": "10.1000/182"}),
        ("POST", "/api/v1/repositories/{repoID}/sources") => json!({"doi": "10.1000/182"}),
        ("PUT", "/api/v1/repositories/{repoID}/sources/{sourceID}/mark") => json!({"kind": "retracted"}),
        ("POST", "/api/v1/promptsets") => {
            json!({"name": "Ours", "phases": {"posture": format!("Number {}", about.number)}})
        }
        ("POST", "/api/v1/repositories/{repoID}/sources/estimate") => json!({"source_ids": []}),
        ("PUT", "/api/v1/repositories/{repoID}/facts/{factID}") => json!({"status": "rejected"}),
        ("PUT", "/api/v1/repositories/{repoID}/contradictions/{contradictionID}") => json!({"state": "real"}),
        ("POST", "/api/v1/repositories/{repoID}/concepts/{conceptID}/merge") => {
            json!({"into": RepositoryId::mint()})
        }
        ("POST", "/api/v1/repositories/{repoID}/concepts/{conceptID}/split") => {
            json!({"fact_ids": [RepositoryId::mint()], "name": "Part", "context": "Own"})
        }
        ("PUT", "/api/v1/repositories/{repoID}/concepts/{conceptID}") => json!({"canonical_name": "Renamed"}),
        ("POST" | "DELETE", "/api/v1/repositories/{repoID}/concepts/{conceptID}/aliases") => {
            json!({"alias": "Another"})
        }
        ("POST", "/mcp") => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ("POST", "/api/v1/repositories") => json!({"name": "Another"}),
        ("PUT", "/api/v1/repositories/{repoID}") => json!({"name": "Renamed"}),
        ("PUT", "/api/v1/repositories/{repoID}/members") => json!({"user_id": about.user, "role": "editor"}),
        ("DELETE", "/api/v1/repositories/{repoID}/members") => json!({"user_id": about.user}),
        ("PUT", path) if path.starts_with("/api/v1/repositories/{repoID}/settings/") => setting(path),
        (_, path) if path.contains("/webhooks") => json!({}),
        ("POST", "/api/v1/repositories/{repoID}/ask") => {
            json!({"question": format!("Do bees dance {} times?", about.number), "mode": "extractive"})
        }
        ("PUT", "/api/v1/repositories/{repoID}/answers/{answerID}") => json!({"shared": true}),
        ("POST", "/api/v1/repositories/{repoID}/answers/{answerID}/feedback") => json!({"verdict": "right"}),
        (
            "POST",
            "/api/v1/repositories/{repoID}/ask/estimate"
            | "/api/v1/repositories/{repoID}/answers/{answerID}/report"
            | "/api/v1/repositories/{repoID}/conversations",
        ) => json!({}),
        ("POST", "/api/v1/repositories/{repoID}/settings/contexts") => json!({"label": "New"}),
        ("POST", "/api/v1/repositories/{repoID}/settings/contexts/{context}/migrate") => {
            json!({"target": "Other"})
        }
        ("POST", "/api/v1/repositories/{repoID}/export-graph") => json!({"destination": "file"}),
        ("POST", "/api/v1/repositories/{repoID}/import-graph") => json!({"upload_id": RepositoryId::mint()}),
        (method, path) => panic!("{method} {path} is new: say in matrix.rs what to send there"),
    })
}

/// What a setting of a repository becomes.
fn setting(path: &str) -> Value {
    match path.rsplit('/').next().unwrap_or_default() {
        "providers" => json!({"provider": "web", "enabled": true}),
        "auto-contribute" => json!({"enabled": true}),
        "registry" => json!({"push_level": "facts"}),
        "promptsets" => json!({"accepted_promptset_hashes": []}),
        "budget" => json!({"monthly_usd": 10}),
        "stages" => json!({"synthesis": false}),
        "ask" => json!({"viewers": true}),
        "contexts" => json!({"unmapped_contexts": "skip"}),
        "{context}" => json!({"description": "More of it"}),
        _ => panic!("PUT {path} is new: say in matrix.rs what to send there"),
    }
}

/// Whether a request like this has no body.
fn takes_none(method: &str, path: &str) -> bool {
    matches!(
        (method, path),
        ("GET", _)
            | (
                "POST",
                "/api/v1/auth/logout"
                    | "/api/v1/admin/jobs/rescue"
                    | "/api/v1/repositories/{repoID}/jobs/{jobID}/cancel"
                    | "/api/v1/repositories/{repoID}/jobs/{jobID}/retry"
                    | "/api/v1/repositories/{repoID}/sources/upload"
                    | "/api/v1/repositories/{repoID}/sources/import"
                    | "/api/v1/repositories/{repoID}/graph-uploads"
                    | "/api/v1/repositories/{repoID}/sources/marks"
                    | "/api/v1/repositories/{repoID}/sources/{sourceID}/process"
                    | "/api/v1/repositories/{repoID}/sources/{sourceID}/retry"
                    | "/api/v1/repositories/{repoID}/concepts/{conceptID}/resynthesize"
                    | "/api/v1/repositories/{repoID}/reports/{reportID}/annotate"
                    | "/api/v1/repositories/{repoID}/settings/contribute-all"
                    | "/api/v1/repositories/{repoID}/settings/pull-all"
                    | "/api/v1/repositories/{repoID}/curation/{curationID}/undo"
                    | "/api/v1/repositories/{repoID}/webhooks/{webhookID}/rotate"
                    | "/api/v1/repositories/{repoID}/webhooks/{webhookID}/test"
                    | "/api/v1/repositories/{repoID}/answers/{answerID}/cancel",
            )
            | (
                "DELETE",
                "/api/v1/users/me/api-keys/{keyID}"
                    | "/api/v1/users/me/grants/{grantID}"
                    | "/api/v1/users/me/sessions/{sessionID}"
                    | "/api/v1/oauth/register/{clientID}"
                    | "/api/v1/repositories/{repoID}"
                    | "/api/v1/repositories/{repoID}/sources/{sourceID}"
                    | "/api/v1/repositories/{repoID}/investigations/{investigationID}"
                    | "/api/v1/repositories/{repoID}/investigations/{investigationID}/sources/{sourceID}"
                    | "/api/v1/repositories/{repoID}/reports/{reportID}"
                    | "/api/v1/repositories/{repoID}/answers/{answerID}"
                    | "/api/v1/repositories/{repoID}/conversations/{conversationID}"
                    | "/api/v1/repositories/{repoID}/sources/{sourceID}/mark"
                    | "/api/v1/repositories/{repoID}/invitations/{invitationID}"
                    | "/api/v1/repositories/{repoID}/webhooks/{webhookID}"
                    | "/api/v1/repositories/{repoID}/settings/contexts/{context}"
                    | "/api/v1/repositories/{repoID}/facts/{factID}/concepts/{conceptID}",
            )
    )
}

fn verb(line: &Line) -> &str {
    line.method.as_ref().map_or("any", Method::as_str)
}

fn kind(line: &Line) -> &'static str {
    match line.kind {
        LineKind::Handler => "",
        LineKind::Service => ", service",
        LineKind::Files => ", files",
    }
}

/// The one that a request is made with; a service takes any.
fn method(line: &Line) -> Method {
    line.method.clone().unwrap_or(Method::POST)
}

fn takes_a_form(line: &Line) -> bool {
    let forms = ["authorize", "authorize/login", "token", "revoke"];
    line.method == Some(Method::POST) && forms.iter().any(|end| line.path == format!("/api/v1/oauth/{end}"))
}

fn path(line: &Line, about: &About) -> String {
    let nothing = RepositoryId::mint().to_string();
    let path = line.path.replace("{userID}", &about.user.to_string()).replace("{path}", "mcp");
    let named = line.path.replace("{repoID}", "").contains('{');
    let repository = about.elsewhere.as_ref().filter(|_| named).unwrap_or(&about.repository);
    let path = path.replace("{repoID}", repository).replace("{jobID}", &about.job);
    let nothing = about.source.map_or(nothing, |source| source.to_string());
    let path = path.replace("{context}", "Own").replace("{n}", "1");
    let path = [
        "{keyID}",
        "{grantID}",
        "{sessionID}",
        "{clientID}",
        "{rest}",
        "{sourceID}",
        "{imageID}",
        "{provider}",
        "{factID}",
        "{conceptID}",
        "{otherID}",
        "{curationID}",
        "{contradictionID}",
        "{investigationID}",
        "{reportID}",
        "{hash}",
        "{invitationID}",
        "{webhookID}",
        "{answerID}",
        "{conversationID}",
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
    let repository = self::repository(&service).await.to_string();
    let sysadmin = register(&service, "sysadmin").await;
    let other = register(&service, "other").await;
    let mut people = vec![("stranger", register(&service, "stranger").await.id), ("sysadmin", sysadmin.id)];
    for role in ROLES {
        people.push((role, register(&service, role).await.id));
    }
    let (key_id, key) = api_key(&service, &sysadmin, &["source:read"]).await;
    let client = access_token(&service, sysadmin.id, "user:read").await;
    let elsewhere = self::repository(&service).await.to_string();
    let neighbour = register(&service, "neighbour").await;
    give(&service, neighbour.id, &elsewhere, "repoadmin").await;
    people.push(("neighbour", neighbour.id));
    let source = source_in(&service, &repository).await;
    let (job, email) = (String::new(), other.email);
    let mut about =
        About { user: other.id, email, repository, job, source: None, elsewhere: None, number: 0 };

    let routes = okt_api::table(&service.api);
    let mut lines: Vec<_> = routes.lines().to_vec();
    lines.sort_by_key(|line| (line.path.clone(), method(line).to_string()));
    let mut matrix = WHO.map(|who| format!("{who:>11}")).join(" ") + "\n";
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
                "able key" => Some(able_key(&service, &sysadmin, line, &key_id).await),
                "able client" => {
                    Some(access_token(&service, sysadmin.id, &permissions(line).join(" ")).await)
                }
                who => {
                    let (_, id) = people.iter().find(|(name, _)| *name == who).unwrap();
                    Some(session(&service, *id).await)
                }
            };
            if who == "neighbour" {
                (about.source, about.elsewhere) = (Some(source), Some(elsewhere.clone()));
            }
            let status = ask(&service, line, &about, token).await;
            (about.source, about.elsewhere) = (None, None);
            let place = format!("{who}: {line}: {status}");
            // The gate let somebody in for the permission of the line, and the handler asks for another one.
            assert_ne!(status, 500, "{place}");
            if who.starts_with("able") && matches!(line.guard, Guard::Needs(_)) {
                assert!(![401, 403].contains(&status), "{place}");
            }
            // Whoever asks what they may do in a repository is told, whatever it is; and there are no vectors here for anybody.
            let told = line.path.ends_with("{repoID}/permissions") || line.path.ends_with("/similar");
            if who == "neighbour" && line.path.contains("{repoID}") && !told {
                assert_eq!(status, 404, "{place}");
            }
            write!(matrix, "{status:>11} ").unwrap();
        }
        writeln!(matrix, " {:6} {} — {}{}", verb(line), line.path, line.guard, kind(line)).unwrap();
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

/// What a line asks for; `source:read` where it asks for nothing. Adding a source by another route asks for that as well.
fn permissions(line: &Line) -> Vec<String> {
    let Guard::Needs(permission) = line.guard else { return vec!["source:read".to_owned()] };
    let also = match line.path.as_str() {
        "/api/v1/sources/retrieve" => Some("source:write"),
        // Who may not see an answer can't write it down.
        "/api/v1/repositories/{repoID}/answers/{answerID}/report" => Some("fact:read"),
        _ => None,
    };
    [permission.to_string()].into_iter().chain(also.map(str::to_owned)).collect()
}

/// A key that may do what the line asks for. Those before go but one, because nobody may have so many.
async fn able_key(service: &TestService, owner: &Person, line: &Line, but: &str) -> String {
    sql(service, &format!("DELETE FROM okt_system.api_keys WHERE id <> '{but}'")).await;
    let permissions = permissions(line);
    let permissions: Vec<&str> = permissions.iter().map(String::as_str).collect();
    api_key(service, owner, &permissions).await.1
}

/// A source with an image and a fact, all with the same id.
async fn source_in(service: &TestService, repository: &str) -> Uuid {
    let id = RepositoryId::mint().uuid();
    let insert = format!(
        "INSERT INTO okt_repository.sources (repository_id, id, url, status, job_id)
         VALUES ('{repository}', '{id}', 'https://example.org/bees', 'processed', '{id}');
         INSERT INTO okt_repository.source_images (repository_id, source_id, id, kind, position)
         VALUES ('{repository}', '{id}', '{id}', 'inline', 0);
         INSERT INTO okt_repository.facts (repository_id, id, text, content_hash, kind, status, model, source_count)
         VALUES ('{repository}', '{id}', 'Bees dance.', sha256('bees'), 'text', 'stable', 'm', 1)"
    );
    sql(service, &insert).await;
    id
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
    let mut request = service.request(method(line), &path(line, about));
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
    if line.path.ends_with("/events") || line.path.ends_with("/ask") {
        // A stream that is let through has no end, and who asks for an answer waits for it.
        let request = request.header("accept", "text/event-stream");
        return request.send().await.unwrap().status().as_u16();
    }
    let answer = Answer::of(request).await;
    let unset = answer.status == 503 && answer.problem() == "not_configured";
    assert!(unset || !answer.status.is_server_error(), "{line}: {answer:?}");
    answer.status.as_u16()
}

#[test]
#[should_panic(expected = "POST /api/v1/novelties is new")]
fn a_line_that_the_matrix_does_not_know_is_noticed() {
    let line = Line {
        method: Some(Method::POST),
        path: "/api/v1/novelties".to_owned(),
        guard: Guard::Authenticated,
        any_query: false,
        kind: LineKind::Handler,
    };
    let (email, repository, job) = (String::new(), String::new(), String::new());
    let (source, elsewhere) = (None, None);
    body(&line, &About { user: Uuid::nil(), email, repository, job, source, elsewhere, number: 0 });
}
