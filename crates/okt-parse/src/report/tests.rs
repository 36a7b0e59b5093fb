use super::*;

/// Each sentence with what it is, and what stands at its place.
fn read(markdown: &str) -> Vec<(String, bool)> {
    report_sentences(markdown, Some("en")).into_iter().map(|found| (found.text, found.is_claim)).collect()
}

fn claims(markdown: &str) -> Vec<String> {
    read(markdown).into_iter().filter(|(_, is_claim)| *is_claim).map(|(text, _)| text).collect()
}

/// What every caller builds on, for any text at all.
fn check(markdown: &str) {
    let points: Vec<char> = markdown.chars().collect();
    let mut last = 0;
    for ReportSentence { start, end, text, .. } in report_sentences(markdown, None) {
        assert!(last <= start && start < end && end <= points.len(), "{markdown:?}: {start}..{end}");
        assert!(
            text.contains(char::is_alphanumeric) && !text.contains(['\n', '\t']),
            "{markdown:?}: {text:?}"
        );
        assert!(text.trim() == text && !text.contains("  "), "{markdown:?}: {text:?}");
        last = end;
    }
}

#[test]
fn only_sentences_that_say_something_are_claims() {
    let report = "# The ferries of Aldra\n\n\
        The line has **two** ferries.[^1] They sail to [Oslo](https://example.org/oslo) &amp; Bergen.[^nobody]\n\n\
        Do they sail in winter? \"They do!\"\n\n\
        - The *older* ferry was built in Ulm\n- The newer one is electric. It is quiet.\n  - It has 24 cabins.\n\n\
        > The council paid for it.\n> Nobody else did.\n\n\
        | ferry | year |\n|---|---|\n| Alder | 1998 |\n\n\
        ```\nlet it = be;\n```\n\n    more code\n\n\
        <div>The ferry is red.</div>\n\n\
        [All of the time table](https://example.org)\n\n<https://example.org/x>\n\nhttps://example.org/y\n\n\
        ![A ferry in the harbour](ferry.png)\n\n`cargo run`\n\n---\n\n\
        1. First it was cheap.\n\n[^1]: The council said that the line has two.\n";
    let expected = [
        ("The ferries of Aldra", false),
        ("The line has two ferries.", true),
        ("They sail to Oslo & Bergen.", true),
        ("Do they sail in winter?", false),
        ("\"They do!\"", true),
        ("The older ferry was built in Ulm", true),
        ("The newer one is electric.", true),
        ("It is quiet.", true),
        ("It has 24 cabins.", true),
        ("The council paid for it.", true),
        ("Nobody else did.", true),
        ("ferry year", false),
        ("Alder 1998", false),
        ("let it = be;", false),
        ("more code", false),
        ("The ferry is red.", false),
        ("All of the time table", false),
        ("https://example.org/x", false),
        ("https://example.org/y", false),
        ("cargo run", false),
        ("First it was cheap.", true),
        ("The council said that the line has two.", false),
    ];
    assert_eq!(read(report), expected.map(|(text, is_claim)| (text.to_owned(), is_claim)));
    check(report);
}

#[test]
fn places_are_code_points_of_the_markdown_and_hold_the_words() {
    let report = "Ça va 😀. **Très _bien_.**[^1] Et\nvoilà `x` &eacute;t&eacute;.\n\n> Une\n> île *verte*\n";
    let points: Vec<char> = report.chars().collect();
    let found: Vec<(String, String)> = report_sentences(report, Some("fr"))
        .into_iter()
        .map(|found| (points[found.start..found.end].iter().collect(), found.text))
        .collect();
    let expected = [
        ("Ça va 😀.", "Ça va 😀."),
        ("Très _bien_.", "Très bien."),
        ("Et\nvoilà `x` &eacute;t&eacute;.", "Et voilà x été."),
        ("Une\n> île *verte", "Une île verte"),
    ];
    assert_eq!(found, expected.map(|(place, text)| (place.to_owned(), text.to_owned())));
}

#[test]
fn no_sentence_goes_beyond_its_block() {
    for report in [
        "The ferry is\n\nred.",
        "- The ferry is\n- red.",
        "> The ferry is\n\nred.",
        "# The ferry is\nred.",
        "The ferry is\n- red.",
        "The ferry is\n***\nred.",
        "The ferry is\n\n```\nx\n```\nred.",
        "- The ferry is\n\n  red.",
    ] {
        let found = read(report);
        let texts: Vec<&str> =
            found.iter().map(|(text, _)| text.as_str()).filter(|text| *text != "x").collect();
        assert_eq!(texts, ["The ferry is", "red."], "{report:?}");
    }
    // A line that was wrapped is no end, and a hard break is none by itself.
    assert_eq!(claims("The ferry\nis red\\\nand white.").len(), 1);
}

#[test]
fn questions_of_any_script_are_no_claims() {
    for report in ["你呢？", "هل جاء؟", "Is it \"true?\"", "Is it **so?**", "Really?)"] {
        assert!(claims(report).is_empty(), "{report}");
    }
    for report in ["He asked: \"Why?\" and left.", "It is so. (Is it?!) It is."] {
        assert!(!claims(report).is_empty(), "{report}");
    }
}

#[test]
fn ten_thousand_sentences_take_no_time() {
    let paragraph = "The **older** ferry of the line was built in Ulm in 1998.[^1] It has 24 cabins, and *nobody* sleeps.\n\n";
    let report = paragraph.repeat(5_000) + "[^1]: The council.\n";
    let began = std::time::Instant::now();
    let found = report_sentences(&report, Some("en"));
    assert_eq!(found.iter().filter(|sentence| sentence.is_claim).count(), 10_000);
    // Unoptimised, and many times what it takes.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    for unit in
        ["[", "*a", "> ", "`", "[a](", "<a ", "- ", "| a ", "[^1]", "&amp;", "![", "word ", "a.\n", "<!--"]
    {
        let report = unit.repeat(200_000 / unit.len());
        let began = std::time::Instant::now();
        check(&report);
        assert!(began.elapsed().as_secs() < 20, "{unit:?} took {:?}", began.elapsed());
    }
}

#[test]
fn any_text_is_read() {
    const PIECES: &str = "*¦**¦_¦~~¦`¦```¦\n¦\n\n¦> ¦- ¦1. ¦# ¦[¦]¦(¦)¦[^1]¦[^1]: ¦![a](b)¦[a](b)¦<b>¦</b>¦<div>¦<!--¦-->¦&amp;¦&eacute;¦&#x1F600;¦\\¦\
         \\*¦| a | b |\n|---|---|\n¦|¦    ¦\t¦\r\n¦  \n¦word¦Word.¦It is so. ¦Is it? ¦é¦😀¦e\u{301}¦字。¦\u{0}¦\u{200b}¦http://a.b¦<http://a.b>¦---¦===¦[x] ";
    let pieces: Vec<&str> = PIECES.split('¦').collect();
    let mut dice = 11_u64;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(dice >> 33).unwrap() % sides
    };
    for _ in 0..20_000 {
        let length = roll(24);
        let report: String = (0..length).map(|_| pieces[roll(pieces.len())]).collect();
        check(&report);
    }
}

#[test]
fn what_cites_a_fact_is_a_claim() {
    let report = "[The line has two ferries](<fact:0197a3c0-0000-7000-8000-00000000000a>)\
        [²](<fact:0197a3c0-0000-7000-8000-00000000000b>). They are red.\n\n[All of the time table](https://example.org)";
    assert_eq!(claims(report), ["The line has two ferries.", "They are red."]);
}
