//! Reads the sources of this crate: nobody does anything here without a proof that they may.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a use case may take as a proof: a scope, which only `okt-auth` makes, for one permission; or, where everybody may do
/// it to what is theirs, the caller.
const PROOFS: [&str; 4] = ["RepoScope<", "SystemScope<", "JobScope", "&Caller"];

/// What is called without one, and why that is right.
const WITHOUT: [(&str, &[&str]); 6] = [
    ("parts of the service itself, for its front ends", &["auth", "config", "databases", "setup_code"]),
    (
        "runs in the process by itself, or for a watcher of the process; names no repository",
        &["announce_setup", "backlog", "bootstrap", "hear_of_jobs", "keep_up", "readiness", "today", "watch"],
    ),
    (
        "authenticates: by a password, a refresh token, an invitation or the setup code",
        &["login", "refresh", "register", "setup"],
    ),
    (
        "OAuth: the client shows who it is, or the person signs in to answer it",
        &[
            "answer",
            "ask",
            "asked_before",
            "authenticate_client",
            "delete_registration",
            "exchange_code",
            "find_client",
            "read_registration",
            "refresh_grant",
            "register_client",
            "revoke_token",
            "sign_in_to_answer",
            "update_registration",
        ],
    ),
    (
        "around a request that the gate let in, before its handler",
        &["claim_once", "finish_once", "release_once"],
    ),
    (
        "for the operator at the command line, who holds the keys of the databases",
        &["move_repository", "promote_by_email", "reset_password", "revoke_origin"],
    ),
];

/// The name and the parameters of every public method of `App`.
fn use_cases(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources are here") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(use_cases(&path));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source is text");
        for block in text.split("\nimpl App {").skip(1) {
            let block = block.split("\n}\n").next().unwrap_or_default();
            for method in block.split("\n    pub ").skip(1) {
                let method = method.strip_prefix("const ").unwrap_or(method);
                let method = method.strip_prefix("async ").unwrap_or(method);
                let Some(method) = method.strip_prefix("fn ") else { continue };
                let signature = method.split(" {\n").next().unwrap_or_default();
                // Of a method of the service: `new` makes one.
                if let (Some(name), true) = (signature.split(['(', '<']).next(), signature.contains("&self"))
                {
                    let parameters = signature.split(") ->").next().unwrap_or_default();
                    found.push((name.to_owned(), parameters.to_owned()));
                }
            }
        }
    }
    found
}

fn sources() -> Vec<(String, String)> {
    use_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_use_case_without_a_proof_but_those_that_were_reviewed() {
    let found = sources();
    assert!(found.len() > 100, "only {} use cases were found; are they written in another way?", found.len());
    let reviewed: BTreeSet<&str> = WITHOUT.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let proven = |parameters: &str| PROOFS.iter().any(|proof| parameters.contains(proof));
    let without: BTreeSet<&str> =
        found.iter().filter(|(_, parameters)| !proven(parameters)).map(|(name, _)| &**name).collect();
    let unproven: Vec<_> = without.difference(&reviewed).collect();
    assert!(
        unproven.is_empty(),
        "{unproven:?}: take a RepoScope or a SystemScope, or say in proofs.rs why not"
    );
    let stale: Vec<_> = reviewed.difference(&without).collect();
    assert!(stale.is_empty(), "{stale:?} need not be in the list of proofs.rs any more");
}

#[test]
fn a_use_case_names_its_permission() {
    for (name, parameters) in sources() {
        let untyped = parameters.contains("RepoAccess") || parameters.contains("Scope<P>");
        assert!(!untyped, "{name} is for whatever permission the caller happens to have: {parameters}");
    }
}
