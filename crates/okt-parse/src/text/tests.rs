use super::*;

#[test]
fn front_matter_tells_about_the_text() {
    let read = markdown(
        "---\ntitle: \"Salt: a history\" # ours\nauthor:\n  - Ada Moss\n  - name: Ben Ode\ndate: 2024-5-7T10:00\n\
         lang: en-GB\ndoi: https://doi.org/10.1234/ABC.5\nlicense: CC0-1.0\ntags: [a, b]\n---\n# Heading\n\nText *here*.\n",
    );
    assert_eq!(read.title.as_deref(), Some("Salt: a history"));
    assert_eq!(read.author.as_deref(), Some("Ada Moss, Ben Ode"));
    assert_eq!(read.published_at.as_deref(), Some("2024-05-07"));
    assert_eq!(read.language.as_deref(), Some("en"));
    assert_eq!(read.doi.as_deref(), Some("10.1234/abc.5"));
    assert_eq!(read.license.as_deref(), Some("CC0-1.0"));
    assert_eq!(read.text, "Heading\n\nText here.");
    assert_eq!(read.markdown, "# Heading\n\nText *here*.");
    let toml = markdown("+++\ntitle = 'Other'\nauthors = [\"A\", \"B\"]\n+++\nText.\n");
    assert_eq!((toml.title.as_deref(), toml.author.as_deref()), (Some("Other"), Some("A, B")));
}

#[test]
fn a_rule_is_no_front_matter() {
    let read = markdown("---\nJust a line under a rule.\n");
    assert_eq!(read.text, "Just a line under a rule.");
}

#[test]
fn no_tag_and_no_script_survives_in_markdown() {
    let read = markdown(
        "Hi <b onclick=x>you</b> <script>alert(1)</script>\n\n<div>\nblock\n</div>\n\n[a](javascript:alert(1)) \
         ![b](data:text/html;x) <javascript:alert(2)> [c]( java\u{1}script:x)\n\n<<b>script>alert(3)</script>\n\n\
         [d][e]\n\n[e]: vbscript:x\n\n`<code>` and [ok](https://a.example/)",
    );
    for event in Parser::new_ext(&read.markdown, options()) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => panic!("{html} in {}", read.markdown),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                assert!(dest_url.starts_with("https://a.example"), "{dest_url} in {}", read.markdown);
            }
            _ => {}
        }
    }
    assert!(read.markdown.contains("[ok](https://a.example/)"), "{}", read.markdown);
}

#[test]
fn control_characters_go_and_line_breaks_are_one_kind() {
    let read = plain("a\u{0}b\r\nc\rd\u{7}\u{1b}[0m\u{feff}");
    assert_eq!(read.text, "ab\nc\nd[0m");
}
