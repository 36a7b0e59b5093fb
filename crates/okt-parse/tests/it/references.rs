//! Lists of references: fixtures against what is kept beside them (`OKT_BLESS=1` writes it anew), lists that are wrong, and
//! lists that were made wrong.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use okt_parse::ParseError;
use okt_parse::references::{Format, LONGEST_LIST, MOST_ENTRIES, Reference, detect, read};
use serde_json::json;

const FIXTURES: [&str; 7] = [
    "zotero.bib",
    "mendeley.bib",
    "scholar.bib",
    "by-hand.bib",
    "endnote.ris",
    "zotero.ris",
    "zotero-csl.json",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/references").join(name)
}

fn text_of(name: &str) -> (String, Format) {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    let format = detect(&text, Some(name), None).unwrap();
    (text, format)
}

/// One line for each row: the label with the title, or with what is wrong.
fn rows(text: &str, format: Format) -> Vec<String> {
    read(text, format)
        .unwrap()
        .into_iter()
        .map(|row| match row {
            Ok(Reference { label, title, .. }) => format!("{label}: {}", title.unwrap_or_default()),
            Err(bad) => format!("{} ! {bad}", bad.label),
        })
        .collect()
}

#[test]
fn lists_of_common_programs_are_read_as_they_were() {
    for name in FIXTURES {
        let (text, format) = text_of(name);
        let rows: Vec<_> = read(&text, format)
            .unwrap()
            .into_iter()
            .map(|row| row.map_or_else(|bad| json!({ "bad": bad }), |reference| json!(reference)))
            .collect();
        let snapshot =
            serde_json::to_string_pretty(&json!({ "format": format, "rows": rows })).unwrap() + "\n";
        let file = fixture(&format!("{name}.golden.json"));
        if std::env::var_os("OKT_BLESS").is_some() {
            std::fs::write(&file, &snapshot).unwrap();
            continue;
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == snapshot,
            "{} is not what the code says any more; look, then OKT_BLESS=1:\n{snapshot}",
            file.display()
        );
    }
}

#[test]
fn a_list_is_known_by_its_text_and_its_name_settles_doubts() {
    let some = |text: &'static str| (!text.is_empty()).then_some(text);
    for (text, name, media_type, format) in [
        ("\u{feff}\r\nTY  - JOUR\r\nER  - \r\n", "", "", Some(Format::Ris)),
        ("Exported by somebody\nTY  - JOUR\n", "", "", None),
        ("Exported by somebody\nTY  - JOUR\n", "a.RIS", "", Some(Format::Ris)),
        ("no list at all", "a.ris", "application/x-research-info-systems", None),
        ("% a\n\n@article{a, title={b}}", "", "", Some(Format::Bibtex)),
        ("@page { margin: 1cm }", "", "", None),
        ("@dictionary{a, title={b}}", "", "", None),
        ("@dictionary{a, title={b}}", "a.bib", "", Some(Format::Bibtex)),
        ("Words\n@article{a, title={b}}", "", "application/x-bibtex; charset=utf-8", Some(Format::Bibtex)),
        ("Words\n@article{a, title={b}}", "", "", None),
        ("<html>", "a.bib", "application/x-bibtex", None),
        ("someone@article.example {x}", "", "", None),
        (r#"[{"type" : "article-journal", "title": "a", "DOI": "b"}]"#, "a.json", "", Some(Format::CslJson)),
        (r#"{"type": "point", "URL": "x"}"#, "a.json", "application/json", None),
        (r#"[{"title": "a"}]"#, "a.json", "application/vnd.citationstyles.csl+json", Some(Format::CslJson)),
        (r#"[{"title": "a"}]"#, "a.csl.json", "", Some(Format::CslJson)),
        ("", "", "", None),
    ] {
        assert_eq!(detect(text, some(name), some(media_type)), format, "{text} {name} {media_type}");
    }
}

#[test]
fn one_bad_entry_of_bibtex_does_not_spoil_the_others() {
    let good = "@misc{good, title = {Good}}";
    let cases = [
        (
            "a brace that is never closed",
            "@misc{a,\n title = {A {b},\n year = 2000\n}",
            "a ! line 2: a brace",
        ),
        (
            "a quotation mark that is never closed",
            "@misc{a, title = \"A, year = 2000}",
            "a ! line 2: a brace",
        ),
        ("nothing behind the brace", "@misc{", "#2 ! line 2: a brace"),
        ("a missing key", "@misc{title = {A}}", "#2: A"),
        ("a missing comma behind the key", "@misc{a\n title = {A}}", "a: A"),
        ("a missing comma between fields", "@misc{a, year = 2000 title = {A}}", "a: A"),
        ("a key on its own line", "@misc{\n a,\n title = {A}}", "a: A"),
        ("fields of one name", "@misc{a, title = {A}, title = {B}}", "a: A"),
        ("an unknown string", "@misc{a, title = nobody # { A}}", "a: nobody A"),
        (
            "a field without a value",
            "@misc{a, title = , year = 2000}",
            "a ! line 2: the field title has no value",
        ),
        ("a field without a name", "@misc{a, title = {A}, = {B}}", "a ! line 2: “name = value” is missing"),
        ("words between fields", "@misc{a, title = {A}, and so on}", "a ! line 2: “name = value” is missing"),
        ("nothing to be found by", "@misc{a, year = 2000}", "a ! line 2: it has no title"),
        ("no fields", "@misc{a}", "a ! line 2: it has no title"),
    ];
    for (name, entry, expected) in cases {
        let found = rows(&format!("{good}\n{entry}\n{good}\n"), Format::Bibtex);
        assert_eq!(found.len(), 3, "{name}: {found:?}");
        assert_eq!((&*found[0], &*found[2]), ("good: Good", "good: Good"), "{name}");
        assert!(found[1].starts_with(expected), "{name}: {found:?}");
    }
    let between =
        format!("x {{ }} \" @ me@home.example\n{good}\n}} }} %@ @misc{{no}}\n@comment{{ @x }}{good}");
    assert_eq!(rows(&between, Format::Bibtex), ["good: Good", "good: Good"]);
}

#[test]
fn one_bad_entry_of_ris_does_not_spoil_the_others() {
    let good = "TY  - JOUR\nID  - good\nTI  - Good\nER  - ";
    for (name, entry, expected) in [
        ("no end", "TY  - JOUR\nTI  - A", "#2: A"),
        ("no beginning", "TI  - A\nER  - ", "#2 ! line 5: it does not begin"),
        ("nothing in it", "TY  - JOUR\nER  - ", "#2 ! line 5: it has no title"),
        ("narrow tags", "TY - JOUR\nTI - A\nER -", "#2: A"),
        ("empty values", "TY  - JOUR\nTI  -\nT1  - A\nUR  - \nER  - ", "#2: A"),
        ("a value of several lines", "TY  - JOUR\nTI  - A\n\n B\nC - D\nER  - ", "#2: A B C - D"),
    ] {
        let found = rows(&format!("{good}\n{entry}\nnotes between entries\n{good}\n"), Format::Ris);
        assert_eq!(found.len(), 3, "{name}: {found:?}");
        assert_eq!((&*found[0], &*found[2]), ("good: Good", "good: Good"), "{name}");
        assert!(found[1].starts_with(expected), "{name}: {found:?}");
    }
    assert_eq!(rows("TY  - JOUR\rTI  - A\rER  - \r", Format::Ris), ["#1: A"]);
}

#[test]
fn one_bad_entry_of_csl_json_does_not_spoil_the_others() {
    let good = r#"{"id": "good", "title": "Good"}"#;
    for (entry, expected) in [
        ("7", "#2 ! line 3: there is a number where"),
        ("null", "#2 ! line 3: there is nothing where"),
        ("[]", "#2 ! line 3: there is a list where"),
        (r#""\ud800""#, "#2 ! line 3: it is not valid JSON"),
        ("{}", "#2 ! line 3: it has no title"),
        (r#"{"id": {}, "title": 5, "author": "x", "issued": []}"#, "#2: 5"),
        (r#"{"id": "a", "title": "A", "title": "B", "issued": {"date-parts": [[null]]}}"#, "a: B"),
        (r#"{"id": "a", "title": "A", "author": [1, {"family": 2}, null], "DOI": false}"#, "a: A"),
    ] {
        let found = rows(&format!("[\n{good},\n{entry},\n{good}]"), Format::CslJson);
        assert_eq!((&*found[0], &*found[2]), ("good: Good", "good: Good"), "{entry}");
        assert!(found[1].starts_with(expected), "{entry}: {found:?}");
    }
    assert_eq!(rows(&format!(r#"{{"items": [{good}]}}"#), Format::CslJson), ["good: Good"]);
    assert_eq!(rows(good, Format::CslJson), ["good: Good"]);
}

#[test]
fn a_list_without_an_entry_or_without_sense_is_damaged() {
    for (text, format) in [
        ("", Format::Bibtex),
        ("@string{a = {b}} @comment{c}", Format::Bibtex),
        ("words", Format::Ris),
        ("[]", Format::CslJson),
        ("", Format::CslJson),
        ("[{\"title\": \"A\"}", Format::CslJson),
        ("{\"items\": 5}", Format::CslJson),
        ("7", Format::CslJson),
    ] {
        assert!(matches!(read(text, format), Err(ParseError::Damaged(_))), "{text}");
    }
}

#[test]
fn more_than_fits_is_too_much_and_says_how_much_it_is() {
    let bibtex = |count: usize| "@misc{a, title={A}}\n".repeat(count);
    let ris = |count: usize| "TY  - JOUR\nTI  - A\nER  - \n".repeat(count);
    let csl = |count: usize| format!("[{}{{\"title\":\"A\"}}]", "{\"title\":\"A\"},".repeat(count - 1));
    for (format, list) in
        [(Format::Bibtex, &bibtex as &dyn Fn(usize) -> String), (Format::Ris, &ris), (Format::CslJson, &csl)]
    {
        assert_eq!(read(&list(MOST_ENTRIES), format).unwrap().len(), MOST_ENTRIES);
        let Err(ParseError::TooMuch(why)) = read(&list(MOST_ENTRIES + 1), format) else {
            panic!("{format:?}")
        };
        assert!(why.contains("1001"), "{why}");
        let long = " ".repeat(LONGEST_LIST + 1);
        assert!(matches!(read(&long, format), Err(ParseError::TooMuch(_))));
    }
}

#[test]
fn values_are_clean_and_not_too_long() {
    let long = "word ".repeat(1_000);
    let authors = vec!["Lovelace, Ada"; 200].join(" and ");
    let bibtex = format!("@misc{{a\u{7}, title={{\u{0}A\n\tB \u{1b}{long}}}, author={{{authors}}}}}");
    let reference = read(&bibtex, Format::Bibtex).unwrap().remove(0).unwrap();
    let title = reference.title.unwrap();
    assert!(title.starts_with("A B word word") && title.chars().count() <= 1_000, "{title}");
    let author = reference.author.unwrap();
    assert!(author.chars().count() <= 1_000 && author.ends_with("; Ada Lovelace"), "{author}");
    assert_eq!(reference.label, "a");
}

#[test]
fn titles_lose_their_tags_and_nothing_else() {
    for (title, expected) in [
        ("The <i>Varroa</i> mite", "The Varroa mite"),
        ("H<sub>2</sub>O at p < 0.05 and x <y> z", "H2O at p < 0.05 and x <y> z"),
        ("<span class='a'>Bees</span>", "Bees"),
        ("<i <b>Bees</b>", "<i Bees"),
        ("Bees <i", "Bees <i"),
    ] {
        let list = serde_json::json!([{ "id": "a", "title": title }]).to_string();
        let row = read(&list, Format::CslJson).unwrap().remove(0).unwrap();
        assert_eq!(row.title.as_deref(), Some(expected), "{title}");
    }
    let long = |length: usize| format!("<span {}>Bees", "x".repeat(length - "<span >".len()));
    for (length, is_tag) in [(200, true), (201, false)] {
        let list = serde_json::json!([{ "id": "a", "title": long(length) }]).to_string();
        let row = read(&list, Format::CslJson).unwrap().remove(0).unwrap();
        assert_eq!(row.title.as_deref() == Some("Bees"), is_tag, "{length}");
    }
}

#[test]
fn lists_written_to_keep_a_reader_busy_do_not() {
    let mega = 2 * 1024 * 1024;
    let fill = |unit: &str| unit.repeat(mega / unit.len());
    let mut doubling = "@string{a0 = {x}}\n".to_owned();
    for n in 1..40 {
        writeln!(doubling, "@string{{a{n} = a{0} # a{0} # a{0}}}", n - 1).unwrap();
    }
    let cases = [
        (
            "nested braces",
            Format::Bibtex,
            format!("@misc{{a, title={{{}x{}}}}}", "{".repeat(10_000), "}".repeat(10_000)),
        ),
        ("open braces", Format::Bibtex, format!("@misc{{a, title={}", fill("{"))),
        ("open entries", Format::Bibtex, fill("@a{\n")),
        ("open entries on a line", Format::Bibtex, fill("@a{")),
        ("at signs", Format::Bibtex, fill("@")),
        ("a kind that never ends", Format::Bibtex, fill("@a ")),
        ("a string of itself", Format::Bibtex, "@string{a = a # a}\n@misc{b, title = a}".to_owned()),
        (
            "doubling strings",
            Format::Bibtex,
            format!("{doubling}{}", "@misc{b, title = a39 # a39, note = a39}\n".repeat(1_000)),
        ),
        ("commas", Format::Bibtex, format!("@misc{{a{}}}", fill(","))),
        ("pieces", Format::Bibtex, format!("@misc{{a, title={}}}", fill("x#"))),
        ("fields", Format::Bibtex, format!("@misc{{a, {}}}", fill("title=x,"))),
        ("small braces", Format::Bibtex, format!("@misc{{a, title={{{}}}}}", fill("{a}"))),
        ("accents", Format::Bibtex, format!("@misc{{a, title={{{}}}}}", fill("\\'{{{"))),
        ("authors", Format::Bibtex, format!("@misc{{a, author={{{}}}}}", fill("a and "))),
        ("a long line", Format::Bibtex, format!("@misc{{a, title={{{}}}}}", fill("word "))),
        ("a long line", Format::Ris, format!("TY  - JOUR\nTI  - {}", fill("word "))),
        ("many lines", Format::Ris, format!("TY  - JOUR\nTI  - A\n{}", fill("\n"))),
        ("many tags", Format::Ris, format!("TY  - JOUR\n{}", fill("DO  - \n"))),
        ("many ends", Format::Ris, fill("TY  - \nER  - \n")),
        ("nested lists", Format::CslJson, fill("[")),
        ("nested objects", Format::CslJson, fill("{\"a\":")),
        ("numbers", Format::CslJson, format!("[{}0]", fill("0,"))),
        ("tags", Format::CslJson, format!("[{{\"title\":\"{}\"}}]", fill("<i"))),
        ("signs", Format::CslJson, format!("[{{\"title\":\"{}\"}}]", fill("<"))),
        ("a long line", Format::CslJson, format!("[{{\"title\":\"{}\"}}]", fill("word "))),
        ("addresses", Format::CslJson, format!("[{{\"URL\":\"{}\"}}]", fill("http://"))),
    ];
    for (name, format, text) in cases {
        let start = Instant::now();
        let rows = read(&text, format).map_or(0, |rows| rows.len());
        detect(&text, None, None);
        detect(&text, Some("a.bib"), None);
        let took = start.elapsed();
        assert!(rows <= MOST_ENTRIES && took < Duration::from_secs(2), "{name}: {rows} rows in {took:?}");
        println!("{format:?} {name}: {rows} rows, {took:?}");
    }
    let (deep, fine) = (depth(65), depth(64));
    assert!(rows(&deep, Format::Bibtex)[0].contains("nested more than 64 deep"));
    assert_eq!(rows(&fine, Format::Bibtex), ["a: x"]);
    let array = |depth: usize| {
        format!("[{{\"title\":\"x\",\"a\":{}{}}}]", "[".repeat(depth - 2), "]".repeat(depth - 2))
    };
    assert!(matches!(read(&array(65), Format::CslJson), Err(ParseError::TooMuch(_))));
    assert_eq!(rows(&array(64), Format::CslJson), ["#1: x"]);
}

fn depth(braces: usize) -> String {
    format!("@misc{{a, title={}x{}}}", "{".repeat(braces), "}".repeat(braces))
}

/// The same numbers on every run.
struct Splitmix(u64);

impl Splitmix {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(below.max(1)).unwrap()).unwrap()
    }
}

#[test]
fn no_mutation_of_a_list_breaks_its_reader() {
    const SIGNS: &[&str] = &[
        "{", "}", "\"", "@", "\n@misc{", "=", "#", ",", "\\", "\\'", "$", "_", "^", "%", "\n", "\r", "é",
        "日", "\u{0}", "\u{feff}", "TY  - ", "ER  - ", "[", "]", "\\ud800", "<i", ">", "(", ")", "and",
        "http://", "arXiv:", "PMID:", "9", "10.", "\u{301}", "\\href", "\\url",
    ];
    let lists: Vec<(String, Format)> = FIXTURES.iter().map(|name| text_of(name)).collect();
    let formats = [Format::Bibtex, Format::Ris, Format::CslJson];
    let mut random = Splitmix(42);
    let (mut good, mut bad) = (0, 0);
    for round in 0..6_000 {
        let (text, format) = &lists[round % lists.len()];
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=random.next(6) {
            let at = random.next(chars.len());
            let end = (at + 1 + random.next(30)).min(chars.len());
            match random.next(4) {
                0 => drop(chars.drain(at..end)),
                1 => {
                    let copy: Vec<char> = chars[at..end].to_vec();
                    let to = random.next(chars.len());
                    chars.splice(to..to, copy);
                }
                2 => chars.truncate(chars.len() - random.next(chars.len() / 4)),
                _ => drop(chars.splice(at..at, SIGNS[random.next(SIGNS.len())].chars())),
            }
        }
        let text: String = chars.iter().collect();
        detect(&text, None, None);
        // Now and then by the reader of another format.
        let format = if random.next(10) == 0 { formats[random.next(3)] } else { *format };
        let Ok(rows) = read(&text, format) else { continue };
        assert!((1..=MOST_ENTRIES).contains(&rows.len()));
        for row in rows {
            match row {
                Ok(reference) => {
                    good += 1;
                    check(&reference);
                }
                Err(entry) => {
                    bad += 1;
                    assert!(entry.line >= 1 && !entry.label.is_empty() && !entry.message.is_empty());
                }
            }
        }
    }
    assert!(good > 5_000 && bad > 500, "the mutations are too mild or too wild: {good} good, {bad} bad");
}

fn check(reference: &Reference) {
    let Reference { label, title, author, published_at, doi, url, arxiv, pmid } = reference;
    let all = [title, author, published_at, doi, url, arxiv, pmid];
    for value in all.into_iter().flatten().chain([label]) {
        let clean = !value.is_empty() && value.trim() == value && !value.contains(char::is_control);
        assert!(clean && value.len() <= 4_096, "{value:?}");
    }
    assert!(doi.as_ref().is_none_or(|doi| doi.starts_with("10.")), "{doi:?}");
    assert!(url.as_ref().is_none_or(|url| url.to_ascii_lowercase().starts_with("http")), "{url:?}");
    assert!(published_at.as_ref().is_none_or(|date| matches!(date.len(), 4 | 7 | 10)), "{published_at:?}");
}
