//! The page that says what proves each promise.

use std::path::Path;

/// Every test in the tree, by name.
fn tests(folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let found = text.lines().filter_map(|line| line.split_once("fn ")?.1.split_once("()"));
            names.extend(found.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_promise_has_tests_and_they_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut names = Vec::new();
    tests(&root.join("crates"), &mut names);
    let page = std::fs::read_to_string(root.join("docs/trust/oauth.md")).unwrap();
    let lines: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).collect();
    let numbers: Vec<_> = lines.iter().filter_map(|(number, _)| number.parse::<usize>().ok()).collect();
    assert_eq!(numbers, (1..=50).collect::<Vec<_>>());
    for (number, rest) in lines.iter().filter(|(number, _)| number.parse::<usize>().is_ok()) {
        // Names of tests are sentences; what else stands in backticks is shorter.
        let proofs: Vec<_> = rest.split('`').skip(1).step_by(2).filter(|text| text.len() > 30).collect();
        assert!(!proofs.is_empty(), "{number} names no test");
        for proof in proofs {
            assert!(names.iter().any(|known| known == proof), "{number}: there is no test {proof}");
        }
    }
}
