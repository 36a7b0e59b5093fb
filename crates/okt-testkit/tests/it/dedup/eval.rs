//! `okt eval dedup`: pairs are counted by what the rule makes of them.

use std::process::Command;

use okt_testkit::jobs::program;

const PAIRS: &str = r#"{"a": "The centre opened on 5 May 2021.", "b": "The center opened on May 5, 2021.", "merge": 1, "kind": "own", "id": 3}
{"a": "A bridge spans the river in Bern.", "b": "In Bern a bridge spans the river.", "merge": 1, "kind": "own"}
{"a": "It has 12 rooms.", "b": "It has 13 rooms.", "merge": 0, "kind": "own"}
{"a": "Das Haus hat 12 Zimmer.", "b": "Das Haus hat 13 Zimmer.", "merge": 0, "kind": "own", "language": "de"}
"#;

#[test]
fn pairs_are_counted_by_language_kind_and_what_became_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let okt = || {
        let done = Command::new(program()).args(["eval", "dedup"]).arg(folder.path()).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
        (done.status.success(), said)
    };
    let (done, said) = okt();
    assert!(!done && said.contains("has no pairs"), "{said}");
    for (name, text) in [
        ("pairs.jsonl", PAIRS),
        ("questions.jsonl", "{\"question\": \"Is it?\"}\n"),
        ("pawsx_fr_dev.tsv", "sentence1\tsentence2\tlabel\nLe chien aboie.\tAboie le chien.\t1\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let (done, said) = okt();
    assert!(done, "{said}");
    let rows: Vec<String> =
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in ["en own 1 0 1 0", "de own 1 0 1 0", "en own 2 1 0 1", "fr paws_paraphrase 1 0 0 1"] {
        assert!(rows.iter().any(|line| line == row), "{row} is missing: {said}");
    }
    assert!(!said.contains("questions.jsonl"), "{said}");
}
