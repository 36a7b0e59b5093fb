//! How the database would run the statements of the store, in the words of the database.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::db::run;

/// Functions of the store, each with words that stand in its statement and in no other.
const STATEMENTS: [(&str, &str); 7] = [
    ("repositories::locate", "WHERE id = coalesce($1, (SELECT s.id FROM okt_system.repositories s"),
    ("repositories::get", "FROM okt_system.repositories WHERE id = ANY ($1) AND state = 'active'"),
    ("repositories::list", "WHERE state = 'active' AND id < coalesce($1"),
    ("repositories::find", "FROM okt_system.repositories WHERE id = $1 AND state = 'active'"),
    ("roles::list_of", "SELECT domain, role FROM okt_system.role_assignments WHERE user_id = $1"),
    ("roles::members", "array_agg(a.role) AS \"roles!\""),
    ("sessions::find_live", "SELECT s.user_id AS \"user\", u.roles_version"),
];

pub(super) async fn plans(conn: &mut PgConnection) -> String {
    explained(conn, &STATEMENTS).await
}

/// The plans of statements, for whatever the parameters may be, on a connection as the service has it. Each is named, with words that
/// stand in it and in no other.
pub async fn explained(conn: &mut PgConnection, statements: &[(&str, &str)]) -> String {
    let records = records();
    let mut text = String::new();
    run(conn, "SET plan_cache_mode = force_generic_plan").await;
    for (name, words) in statements {
        let found: Vec<_> = records.iter().filter(|record| query(record).contains(*words)).collect();
        assert_eq!(found.len(), 1, "{name} is told by other words than: {words}");
        let types: Vec<_> = parameters(found[0]).iter().map(|name| sql_type(name)).collect();
        let nothing = vec!["NULL"; types.len()];
        run(conn, &format!("PREPARE planned ({}) AS {}", types.join(", "), query(found[0]))).await;
        let explain = format!("EXPLAIN (COSTS OFF) EXECUTE planned ({})", nothing.join(", "));
        let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_all(&mut *conn)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        run(conn, "DEALLOCATE planned").await;
        let _ = writeln!(text, "{name}\n    {}\n", lines.join("\n    "));
    }
    run(conn, "RESET plan_cache_mode").await;
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// What was recorded of every checked statement: its very text, so that no copy can fall behind.
fn records() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.sqlx");
    let files = std::fs::read_dir(folder).expect("the records of the statements");
    let record = |file: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    };
    files.map(record).collect()
}

fn query(record: &Value) -> &str {
    record["query"].as_str().expect("the text of a statement")
}

fn parameters(record: &Value) -> Vec<&str> {
    let parameters = record["describe"]["parameters"]["Left"].as_array().expect("types");
    parameters.iter().map(|name| name.as_str().expect("a name")).collect()
}

fn sql_type(name: &str) -> &'static str {
    match name {
        "Uuid" => "uuid",
        "UuidArray" => "uuid[]",
        "Text" => "text",
        "Int4" => "integer",
        "Int8" => "bigint",
        "Bytea" => "bytea",
        other => panic!("how is {other} called in SQL?"),
    }
}
