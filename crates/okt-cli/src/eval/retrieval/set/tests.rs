use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn titles<'a>(set: &'a Set, question: &Question) -> Vec<&'a str> {
    question.gold.iter().map(|at| &*set.documents[*at].title).collect()
}

/// Where reading fails, and why.
fn refusal(files: &[(&str, &str)]) -> String {
    format!("{:#}", read(folder(files).path()).unwrap_err())
}

const BEIR: [(&str, &str); 2] = [
    (
        "beir/queries.jsonl",
        "{\"_id\": \"1\", \"text\": \"Do bees dance?\", \"metadata\": {}}\n{\"_id\": \"2\", \"text\": \"Of train\"}\n\
         {\"_id\": \"3\", \"text\": \"Do ants?\"}\n",
    ),
    ("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\t12\t1\n3\t10\t1\n1\t10\t1\n1\t11\t0\n"),
];
const ABSTRACTS: &str = "{\"_id\": \"10\", \"title\": \"Bees\", \"text\": \"They dance.\"}\n\
                         {\"_id\": \"11\", \"title\": \"Ants\", \"text\": \"They walk.\"}\n\
                         {\"_id\": \"12\", \"title\": \"Hives\", \"text\": \"Full of dance.\"}\n";

#[test]
fn beir_has_judgements_of_the_test_split_and_a_packed_corpus() {
    let folder = folder(&BEIR);
    let corpus = File::create(folder.path().join("beir/corpus.jsonl.gz")).unwrap();
    let mut corpus = GzEncoder::new(corpus, Compression::fast());
    corpus.write_all(ABSTRACTS.as_bytes()).unwrap();
    corpus.finish().unwrap();
    // The whole set and its part in the form of BEIR are one.
    for path in [folder.path().to_owned(), folder.path().join("beir")] {
        let set = read(&path).unwrap();
        assert_eq!((set.name, set.measure, set.documents.len()), ("scifact", Measure::Ranking, 3));
        let asked: Vec<&str> = set.questions.iter().map(|question| &*question.text).collect();
        assert_eq!(asked, ["Do bees dance?", "Do ants?"]);
        assert_eq!(titles(&set, &set.questions[0]), ["Bees", "Hives"]);
        assert_eq!(set.file_name(&set.documents[2]), "scifact-12.txt");
    }
}

#[test]
fn malformed_lines_are_errors_with_file_and_line() {
    let [queries, qrels] = BEIR;
    let corpus = ("beir/corpus.jsonl", ABSTRACTS);
    let broken = ABSTRACTS.replace("{\"_id\": \"11\"", "{\"_id\": 11");
    assert!(refusal(&[queries, qrels, ("beir/corpus.jsonl", &broken)]).contains("corpus.jsonl:2: "));
    let twice = format!("{ABSTRACTS}{ABSTRACTS}");
    assert!(
        refusal(&[queries, qrels, ("beir/corpus.jsonl", &twice)])
            .contains("corpus.jsonl:4: 10 is there twice")
    );
    let empty = ABSTRACTS.replace("They walk.", " ");
    assert!(
        refusal(&[queries, qrels, ("beir/corpus.jsonl", &empty)])
            .contains("corpus.jsonl:2: the text is empty")
    );
    let blank = ABSTRACTS.replace("}\n", "}\n\n");
    assert!(refusal(&[queries, qrels, ("beir/corpus.jsonl", &blank)]).contains("corpus.jsonl:2: "));
    for (line, why) in [
        ("1\t12", "test.tsv:2: not three columns"),
        ("1\t12\tmuch", "test.tsv:2: the score is no number"),
        ("9\t12\t1", "test.tsv:2: queries.jsonl has no query 9"),
        ("1\t99\t1", "has no 99"),
    ] {
        let judged = format!("query-id\tcorpus-id\tscore\n{line}\n");
        let said = refusal(&[queries, ("beir/qrels/test.tsv", &judged), corpus]);
        assert!(said.contains(why), "{said}");
    }
    let said = refusal(&[("corpus.json", "[{\"title\": \"A\",\n\"text\": 1}]"), ("questions.jsonl", "")]);
    assert!(said.contains("corpus.json:2: "), "{said}");
    assert!(refusal(&[]).contains("has no data set"));
}

#[test]
fn two_wiki_leaves_out_questions_without_known_passages() {
    let folder = folder(&[
        (
            "corpus.json",
            r#"[{"title": "Lothair II", "text": "A king."}, {"title": "Ermengarde of Tours", "text": "A queen."}]"#,
        ),
        (
            "questions.jsonl",
            "{\"id\": \"a\", \"question\": \"When?\", \"gold_titles\": [\"Ermengarde of Tours\", \"Lothair II\"]}\n\
             {\"id\": \"b\", \"question\": \"Who?\", \"gold_titles\": null}\n",
        ),
    ]);
    let set = read(folder.path()).unwrap();
    assert_eq!((set.name, set.measure), ("2wiki", Measure::Recall));
    assert_eq!((set.questions.len(), set.left_out), (1, 1));
    assert_eq!(titles(&set, &set.questions[0]), ["Lothair II", "Ermengarde of Tours"]);
    assert_eq!(set.file_name(&set.documents[0]), "2wiki-1.txt");
}

#[test]
fn hotpot_has_sentences_and_documents_of_one_text_are_one() {
    let folder = folder(&[
        (
            "corpus.jsonl",
            "{\"title\": \"Rush\", \"sentences\": [\"A band.\", \" From Canada.\"]}\n\
             {\"title\": \"Neil Peart\", \"sentences\": [\"A drummer.\"]}\n\
             {\"title\": \"Peart\", \"sentences\": [\"A drummer.\"]}\n",
        ),
        (
            "questions.jsonl",
            "{\"question\": \"Which band?\", \"supporting_facts\": [[\"Peart\", 0], [\"Rush\", 1], [\"Rush\", 0]]}\n",
        ),
    ]);
    let set = read(folder.path()).unwrap();
    assert_eq!((set.name, &*set.documents[0].text), ("hotpotqa", "A band. From Canada."));
    assert_eq!(set.distinct().map(|(at, _)| at).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(titles(&set, &set.questions[0]), ["Rush", "Neil Peart"]);
}

const MUSIQUE: [(&str, &str); 2] = [
    (
        "dev200_corpus.jsonl",
        "{\"pid\": 7, \"title\": \"Stanley\", \"text\": \"A town.\"}\n{\"pid\": 8, \"title\": \"Stanley\", \"text\": \"A knife.\"}\n\
         {\"pid\": 9, \"title\": \"Van Hook\", \"text\": \"A township.\"}\n{\"pid\": 10, \"title\": \"Ulm\", \"text\": \"A city.\"}\n",
    ),
    (
        "dev200_questions.jsonl",
        "{\"question\": \"What seat?\", \"gold_pids\": [9, 7]}\n{\"question\": \"What knife?\", \"gold_pids\": [8]}\n\
         {\"question\": \"What city?\", \"gold_pids\": [10]}\n",
    ),
];

#[test]
fn musique_names_passages_by_number() {
    let set = read(folder(&MUSIQUE).path()).unwrap();
    assert_eq!((set.name, set.documents.len(), set.questions.len()), ("musique", 4, 3));
    assert_eq!(set.questions[0].gold, BTreeSet::from([0, 2]));
    assert_eq!(set.file_name(&set.documents[0]), "musique-7.txt");
    let said =
        refusal(&[MUSIQUE[0], ("dev200_questions.jsonl", "{\"question\": \"?\", \"gold_pids\": [1]}")]);
    assert!(said.contains("dev200_questions.jsonl:1: ") && said.contains("has no 1"), "{said}");
}

#[test]
fn a_limit_keeps_the_documents_of_the_first_questions() {
    let mut set = read(folder(&MUSIQUE).path()).unwrap();
    set.limit(3);
    let left: Vec<&str> = set.documents.iter().map(|document| &*document.id).collect();
    assert_eq!(left, ["7", "8", "9"]);
    assert_eq!(set.questions.len(), 2);
    assert_eq!(set.questions[0].gold, BTreeSet::from([0, 2]));
    assert_eq!(set.questions[1].gold, BTreeSet::from([1]));
    let mut set = read(folder(&MUSIQUE).path()).unwrap();
    set.limit(1);
    assert_eq!((set.documents.len(), set.questions.len()), (1, 0));
}

#[test]
fn news_have_evidence_and_an_article_twice() {
    let article =
        r#"{"title": "The trial", "url": "https://example.org/a", "body": "It began on Monday. It ended."}"#;
    let other = r#"{"title": "The verdict", "url": "https://example.org/b", "body": "He was guilty."}"#;
    let evidence = r#"[{"query": "Who?", "evidence_list": [{"url": "https://example.org/b", "fact": "He was  guilty."},
                       {"url": "https://example.org/a", "fact": "It ended."}]}]"#;
    let folder = folder(&[
        ("corpus.json", &format!("[{article}, {article}, {other}]")),
        ("queries_covered.json", evidence),
    ]);
    let set = read(folder.path()).unwrap();
    assert_eq!((set.name, set.measure), ("multihop-rag", Measure::Evidence));
    assert_eq!((set.documents.len(), set.distinct().count()), (3, 2));
    assert_eq!(titles(&set, &set.questions[0]), ["The trial", "The verdict"]);
    assert_eq!(set.questions[0].evidence, ["Hewasguilty.", "Itended."]);
}
