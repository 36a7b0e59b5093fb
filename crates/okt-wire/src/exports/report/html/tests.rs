use std::fmt::Write as _;

use okt_model::Posture;

use super::super::tests::{claim, evidence, report, source};
use super::*;
use crate::exports::citation::tests::HOSTILE;

/// The tags of a page in their order. All text is escaped, so whatever begins like a tag has to be one of ours, and closed.
fn tags(page: &str) -> Vec<String> {
    const NAMES: &str = " html head meta title style body header main section h1 h2 h3 h4 h5 h6 p ul ol li a b q cite span strong \
        em del sup div pre code blockquote table thead tbody tr th td hr br ";
    const ATTRIBUTES: &str = " lang charset http-equiv content name class id href rel start data-fact ";
    let page = page.replacen(STYLE, "", 1).replacen("<!doctype html>", "", 1);
    let (mut rest, mut tags, mut open) = (&*page, Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = rest[at + 1..end].to_owned();
        rest = &rest[end + 1..];
        let name = tag.split(' ').next().unwrap().trim_start_matches('/').to_owned();
        assert!(NAMES.contains(&format!(" {name} ")), "<{tag}> of\n{page}");
        let mut attributes = tag[tag.find(' ').unwrap_or(tag.len())..].trim();
        while let Some((attribute, value)) = attributes.split_once("=\"") {
            let attribute = attribute.trim();
            assert!(ATTRIBUTES.contains(&format!(" {attribute} ")), "<{tag}>");
            let (value, more) = value.split_once('"').expect("a value ends");
            let is_link = attribute == "href" && !value.starts_with('#');
            assert!(!is_link || value.starts_with("http://") || value.starts_with("https://"), "<{tag}>");
            attributes = more.trim();
        }
        assert_eq!(attributes, "", "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name.clone()), "<{tag}> closes what is open in\n{page}");
        } else if !["meta", "hr", "br"].contains(&&*name) {
            assert!(name != "a" || !open.contains(&name), "a link in a link: {page}");
            open.push(name.clone());
        }
        tags.push(tag);
    }
    assert!(open.is_empty(), "{open:?}");
    tags
}

/// What is between the tags of the main part.
fn main_of(page: &str) -> &str {
    let from = page.find("<main>").unwrap() + 7;
    &page[from..page.find("</main>").unwrap()]
}

fn body(markdown: &str) -> String {
    let page = html(&report(markdown, Vec::new()));
    tags(&page);
    main_of(&page).to_owned()
}

#[test]
fn the_page_says_how_each_claim_stands() {
    let text =
        "# On bees\n\nBees *dance* and `x`. They swim. See [this](https://example.org). Nobody knows.\n";
    let mut claims = vec![
        claim(text, "Bees *dance* and `x`.", Standing::Supported),
        claim(text, "They swim.", Standing::Contradicted),
        claim(text, "See [this](https://example.org).", Standing::Unsupported),
        claim(text, "Nobody knows.", Standing::Unchecked),
    ];
    claims[0].evidence.push(evidence(Posture::Supports, "Honey bees <dance>.", &[1, 9]));
    claims[1].evidence.push(evidence(Posture::Contradicts, "No bee swims.", &[1]));
    claims[1].evidence[0].retracted = true;
    let mut printed = report(text, claims);
    printed.sources = vec![source("Dances & more")];
    printed.sources[0].note = Some("Retracted: made up".to_owned());
    let page = html(&printed);
    tags(&page);
    assert_eq!(
        main_of(&page),
        "<p><span class=\"claim supported\">Bees </span><em><span class=\"claim supported\">dance</span></em>\
         <span class=\"claim supported\"> and </span><span class=\"claim supported\"><code>x</code></span>\
         <span class=\"claim supported\">.</span><a class=\"mark supported\" id=\"c1\" href=\"#n1\">supported 1</a> \
         <span class=\"claim contradicted\">They swim.</span>\
         <a class=\"mark contradicted\" id=\"c2\" href=\"#n2\">contradicted 2</a> \
         <span class=\"claim unsupported\">See </span><a rel=\"noreferrer\" href=\"https://example.org\">\
         <span class=\"claim unsupported\">this</span></a><span class=\"claim unsupported\">.</span>\
         <span class=\"mark unsupported\">unsupported</span> \
         <span class=\"claim unchecked\">Nobody knows.</span><span class=\"mark unchecked\">not checked</span></p>\n"
    );
    for expected in [
        "<p class=\"summary\">Not checked as a whole yet: 4 claims, of these 1 supported, 1 contradicted, 1 unsupported, 1 not checked.</p>",
        "<b>supports it:</b> <q>Honey bees &lt;dance&gt;.</q> <a href=\"#s1\">[1]</a>, [9]</li>",
        "<q>No bee swims.</q> <a href=\"#s1\">[1]</a> <strong class=\"warning\">all its sources were retracted</strong>",
        "<li id=\"s1\">Moss, Ada. <cite>Dances &amp; more</cite>. Journal of Bees. \
         <a rel=\"noreferrer\" href=\"https://doi.org/10.1000/182\">https://doi.org/10.1000/182</a> \
         <strong class=\"warning\">Retracted: made up</strong></li>",
        "<html lang=\"en\">",
    ] {
        assert!(page.contains(expected), "{expected}\n---\n{page}");
    }
    assert_eq!(page.matches("<h1>").count(), 1, "the title is there once");
}

#[test]
fn markdown_of_every_kind_is_shown() {
    let shown = body(
        "## A\n\n> quoted\n\n3. three\n4. four\n   - [x] done\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nlet a = 1 < 2;\n```\n\n---\n\n~~gone~~ **b**[^1]\n\n[^1]: note\n",
    );
    for expected in [
        "<h2>A</h2>",
        "<blockquote>\n<p>quoted</p>",
        "<ol start=\"3\">\n<li>three</li>",
        "☑ done",
        "<th class=\"right\">b</th></tr></thead>\n<tbody>\n<tr><td>1</td><td class=\"right\">2</td></tr>",
        "<pre><span class=\"language\">rust</span>\n<code>let a = 1 &lt; 2;\n</code></pre>",
        "<hr>",
        "<del>gone</del> <strong>b</strong><sup>[1]</sup>",
        "<div class=\"footnote\"><sup>[1]</sup> <p>note</p>\n</div>",
    ] {
        assert!(shown.contains(expected), "{expected}\n---\n{shown}");
    }
}

#[test]
fn nothing_of_the_body_becomes_active() {
    for hostile in [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<style>*{display:none}</style>",
        "<!-- hidden",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1)) [b](data:text/html,x) [c](//evil.example) [d](file:///etc/passwd)",
        "[a](https://example.org/\"onclick=\"x)",
        "[a](<https://example.org/' onmouseover='x>)",
        "![a](https://example.org/pixel.png)",
        "[![a](https://example.org/b.png)](https://example.org)",
        "[a [b](https://example.org/1) c](https://example.org/2)",
        "<https://example.org/?a=1&b=2>",
        "<a href=\"javascript:x\">y</a>",
        "&lt;script&gt; &#60;b&#62; \\<i\\>",
        "```\"><script>\nx\n```",
        "[^\"><script>]\n\n[^\"><script>]: x",
        "| <b> | \"x |\n|---|---|\n| </td><script> | y |",
        "# </h1><script>",
        "\u{0}\u{1b}[31m\u{202e}\u{ffff}",
        "</main></body></html>",
    ] {
        let shown = body(hostile);
        assert!(!shown.contains("<img") && !shown.contains("<script"), "{hostile}: {shown}");
    }
    let image = body("![a *b*](https://example.org/pixel.png)");
    assert_eq!(
        image,
        "<p><a rel=\"noreferrer\" href=\"https://example.org/pixel.png\">[image: a <em>b</em>]</a></p>\n"
    );
    assert_eq!(body("<script>a</script>"), "<pre><code>&lt;script&gt;a&lt;/script&gt;</code></pre>\n");
}

#[test]
fn texts_of_others_are_text() {
    for hostile in HOSTILE {
        let text = "Bees dance.";
        let mut claims = vec![claim(text, text, Standing::Supported)];
        claims[0].evidence.push(evidence(Posture::Supports, hostile, &[1]));
        let mut printed = report(text, claims);
        printed.sources = vec![source(hostile)];
        printed.sources[0].note = Some((*hostile).to_owned());
        printed.sources[0].doi = Some(format!("10.1/{hostile}"));
        printed.title = (*hostile).to_owned();
        printed.language = Some((*hostile).to_owned());
        tags(&html(&printed));
    }
}

#[test]
fn claims_may_lie_anywhere() {
    // Of any text, whatever its marks, every cut makes a page that is whole.
    let text =
        "*Bees* [dance](https://example.org) `on` &amp; \\*combs\\* <b>in</b>\n- the **dark**, 🐝.\n> Or not";
    let points = text.chars().count();
    for start in 0..points {
        for end in [start + 1, start + 7, points] {
            let claim = |start, end, standing| super::super::PrintedClaim {
                start,
                end,
                standing,
                evidence: vec![evidence(Posture::Related, "x", &[])],
            };
            let claims = vec![
                claim(start, end.min(points), Standing::Supported),
                claim(end, points, Standing::Contradicted),
            ];
            let page = html(&report(text, claims));
            tags(&page);
            assert!(page.matches("id=\"c1\"").count() <= 1, "{start} {end}: {page}");
        }
    }
}

#[test]
fn a_body_that_is_nested_deeply_makes_no_large_page() {
    for deep in ["> ".repeat(20_000), "- ".repeat(20_000), "*".repeat(20_000), "[".repeat(20_000)] {
        let began = std::time::Instant::now();
        let shown = body(&format!("{deep}x"));
        assert!(shown.len() < 200_000, "{}", shown.len());
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}

#[test]
fn a_long_report_takes_a_moment() {
    let mut text = String::new();
    for n in 0..10_000 {
        let _ = write!(text, "Sentence {n} says *something* of bees. ");
        if n % 10 == 0 {
            text.push_str("\n\n");
        }
    }
    let mut claims = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive(". ") {
        let points = part.chars().count();
        claims.push(super::super::PrintedClaim {
            start: at,
            end: at + points - 1,
            standing: Standing::Supported,
            evidence: vec![evidence(Posture::Supports, "A fact.", &[1])],
        });
        at += points;
    }
    let page = html(&report(&text, claims));
    assert_eq!(page.matches("class=\"mark supported\"").count(), 20_000);
}

#[test]
fn no_text_ends_an_attribute() {
    assert_eq!(escaped("<a> & \"b\" 'c'\u{0}"), "&lt;a&gt; &amp; &quot;b&quot; &#39;c&#39; ");
}

#[test]
fn the_style_is_the_one_that_the_policy_names() {
    let page = html(&report("x", Vec::new()));
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    assert!(page.contains(&format!("<style>{STYLE}</style>")));
    assert!(page.contains(&format!("style-src 'sha256-{style}'")) && html_policy().contains(&style));
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"), "it asks for nothing");
    assert!(!STYLE.contains('<'));
}
