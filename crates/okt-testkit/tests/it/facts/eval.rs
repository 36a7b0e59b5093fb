//! `okt eval facts`: facts of texts are counted by what the checks of the job make of them.

use std::path::Path;

use okt_testkit::jobs::program;
use okt_testkit::llm::{Behaviour, ModelServer};
use tokio::process::Command;

const TIDES: &str = "---\ntitle: Tides of Halden\n---\nThe Rance station has 24 turbines. It was opened in 1966 by the state. \
                     Halden Ferries has two ships. They were built in Ulm. Copper conducts electricity very well. \
                     Book your tickets here! Norway has fewer people than Sweden does. The harbour of Halden was closed in 1998.\n";

async fn eval(folder: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(program());
    command.args(["eval", "facts"]).arg(folder.join("texts")).args(arguments).arg("--config").arg(folder);
    let done = command.env_clear().envs(settings.iter().copied()).output().await.unwrap();
    (
        done.status.success(),
        String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap(),
    )
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("texts")).unwrap();
    folder
}

/// The value of a line.
fn told<'s>(said: &'s str, name: &str) -> &'s str {
    let line =
        said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {said}"));
    line.trim()
}

#[tokio::test]
async fn without_a_model_sentences_are_counted_by_why_they_are_no_facts() {
    let folder = folder();
    let (done, said) = eval(folder.path(), &[], &[]).await;
    assert!(!done && said.contains("has no texts"), "{said}");
    std::fs::write(folder.path().join("texts/tides.md"), TIDES).unwrap();
    let (done, said) = eval(folder.path(), &["--list"], &[]).await;
    assert!(done, "{said}");
    assert_eq!(told(&said, "model "), "builtin-extractive-1");
    assert_eq!(told(&said, "read "), "1 texts, 8 sentences, 0 chunks");
    assert_eq!(told(&said, "facts "), "5, 0.62 per sentence");
    assert_eq!(told(&said, "sentences covered "), "62.5 % of 8 sentences");
    assert_eq!(told(&said, "calls "), "0, 0 tokens in, 0 out, 0 USD");
    assert!(told(&said, "facts refused ").contains("connective 2"), "{said}");
    assert!(said.contains("tides.md {0} +: The Rance station has 24 turbines."), "{said}");
}

#[tokio::test]
async fn a_model_is_asked_as_the_job_asks_and_in_smaller_pieces_where_it_copies() {
    let (folder, prompts) = (folder(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("texts/tides.md"), TIDES).unwrap();
    let model = "providers.decomposition.fact_extraction.model = \"m\"\n[[providers.ai.models]]\nid = \"m\"\n\
                 provider = \"cloud\"\ninput_cost_per_1m = 1.0\noutput_cost_per_1m = 4.0\n";
    std::fs::write(folder.path().join("okt.toml"), model).unwrap();
    let server = ModelServer::start(Behaviour { copies_above: 4, keep: true, ..Behaviour::default() }).await;
    let url = server.base_url();
    let settings = [("SVC__PROVIDERS__AI__CLOUD__BASE_URL", url.as_str()), ("LLM_CLOUD_API_KEY", "key")];
    let (done, said) = eval(folder.path(), &[], &settings).await;
    assert!(done, "{said}");
    // The whole twice, then its halves.
    let stats = server.await_stats(|stats| stats.requests == 4 && stats.asked.len() == 4).await;
    assert!(stats.asked[0].starts_with("Title: Tides of Halden\n[0] The Rance"), "{:?}", stats.asked);
    assert!(told(&said, "calls ").starts_with("4, "), "{said}");
    assert_eq!(told(&said, "answers refused "), "too_coarse 2");
    assert_eq!(told(&said, "facts "), "6, 0.75 per sentence");
    assert_eq!(told(&said, "atomic "), "80.0 % of 10 stated");
    assert_eq!(told(&said, "grounded "), "100.0 % of 8 atomic");
    assert_eq!(told(&said, "stand alone by rule "), "83.3 % of 6 facts");
    assert_eq!(told(&said, "sentences covered "), "75.0 % of 8 sentences");
    assert_eq!(told(&said, "facts refused "), "not_atomic 2, pronoun 2");
    assert_eq!(told(&said, "parts without answer "), "0");
    let hash = told(&said, "prompt ").to_owned();
    assert_eq!(hash, okt_extract::Promptset::builtin().registry_hash().to_string());

    let prompt = prompts.path().join("prompt.md");
    std::fs::write(&prompt, "Name the facts.").unwrap();
    let (done, said) = eval(folder.path(), &["--prompt", prompt.to_str().unwrap()], &settings).await;
    assert!(done, "{said}");
    assert_ne!(told(&said, "prompt "), hash);

    drop(server);
    let (done, said) = eval(
        folder.path(),
        &[],
        &[settings[1], ("SVC__PROVIDERS__LLM_RETRY__MAX_ATTEMPTS", "1"), settings[0]],
    )
    .await;
    assert!(!done && said.contains("did not answer"), "{said}");
}
