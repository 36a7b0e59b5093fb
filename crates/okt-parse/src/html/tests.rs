use super::*;

fn page(html: &str) -> Read {
    let hint = Hint { url: Some("https://site.example/a/b".into()), ..Hint::default() };
    read(html, &hint, &Limits::default()).unwrap()
}

#[test]
fn no_tag_and_no_script_survives_into_markdown() {
    let read = page(
        "<article><p>One &lt;script&gt;alert(1)&lt;/script&gt; and <a href='javascript:alert(2)'>a link</a>, \
         <a href=' java\nscript:alert(3)'>another</a>, <a href='/c(d)'>a good one</a>, <b>bold <i>both</i></b>.</p>\
         <p>&lt;img src=x onerror=alert(4)&gt; is text; `code` too. <code>a`b<i></code> <code>&lt;b></code> <code>x<code>&lt;u></code></code> <code>y<br>&lt;s></code></p>\
         <p># not a heading</p><p>1. not a list</p><pre>```\n<b>x</b>\n</pre></article>",
    );
    let markdown = &read.markdown;
    for event in pulldown_cmark::Parser::new(markdown) {
        use pulldown_cmark::{Event, Tag};
        match event {
            Event::Html(html) | Event::InlineHtml(html) => panic!("{html} in {markdown}"),
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert_eq!(&*dest_url, "https://site.example/c%28d%29");
            }
            Event::Start(Tag::Heading { .. } | Tag::List(_)) => panic!("{markdown}"),
            _ => {}
        }
    }
    assert!(markdown.contains("**bold *both***"), "{markdown}");
}

#[test]
fn images_are_absolute_or_carried_and_never_svg() {
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsgAAbQABlvT4GAAAAABJRU5ErkJggg==";
    let html = format!(
        "<article><p>{}</p><img src='../x.jpg' alt='A  hill' width=640 height='480px'><img src=/icon.png width=16>\
         <img src='https://cdn.example/p.svg'><img src='data:image/svg+xml;base64,PHN2Zz4='><img src=/x.jpg>\
         <img data-src='/late.webp' src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>\
         <img src='data:text/html;base64,{pixel}'><img src='javascript:x'></article>",
        "Some words of prose, enough to be the content of this page. ".repeat(5),
    );
    let images = page(&html).images;
    let urls: Vec<_> = images.iter().map(|image| image.url.as_deref().unwrap_or("bytes")).collect();
    assert_eq!(urls, ["https://site.example/x.jpg", "https://site.example/late.webp", "bytes"]);
    assert_eq!(
        (images[0].alt_text.as_deref(), images[0].width, images[0].height),
        (Some("A hill"), Some(640), Some(480))
    );
    assert_eq!(images[2].content_type.as_deref(), Some("image/png"));
    assert_eq!(images.iter().map(|image| image.position).collect::<Vec<_>>(), [0, 1, 2]);
    let few = Limits { images: 1, ..Limits::default() };
    assert_eq!(read(&html, &Hint::default(), &few).unwrap().images.len(), 1);
}

#[test]
fn markup_written_to_keep_a_reader_busy_does_not() {
    let numbered =
        |unit: &str, count: usize| (0..count).map(|i| unit.replace('#', &i.to_string())).collect::<String>();
    for (name, html) in [
        ("deep", "<div>".repeat(100_000)),
        ("deep and closed", format!("{}x{}", "<div>".repeat(50_000), "</div>".repeat(50_000))),
        ("deep tables", "<table><tr><td>".repeat(20_000)),
        ("formatting", numbered("<b a#><p>x", 20_000)),
        ("links", numbered("<a href=#><div>x", 20_000)),
        ("lists", "<ul><li>".repeat(20_000)),
        ("headers", "<header>".repeat(20_000)),
        ("paragraphs", "<p>".repeat(300_000)),
        ("attributes", format!("<p {}>x", numbered("a#=1 ", 5_000))),
        ("classes", format!("<p class='{}'>x", "a-".repeat(500_000))),
        ("unclosed comment", format!("<!--{}", "<!-".repeat(200_000))),
        ("unclosed script", format!("<script>{}", "</scrip".repeat(200_000))),
        ("entities", "&amp;&#0;&#x10ffff;&notanentity".repeat(50_000)),
        ("brackets", "<".repeat(500_000)),
        ("breaks", "a<br>".repeat(100_000)),
        ("end tags", "</p></table></br></body>".repeat(50_000)),
    ] {
        let began = std::time::Instant::now();
        let html = format!("<body>words before it {html} and words after it");
        read(&html, &Hint::default(), &Limits::default()).unwrap();
        assert!(began.elapsed().as_secs() < 5, "{name} took {:?}", began.elapsed());
    }
}

#[test]
fn a_tag_with_a_hundred_thousand_attributes_is_refused() {
    let many: String = (0..100_000).fold(String::new(), |all, i| all + "a" + &i.to_string() + " ");
    for html in
        [format!("<p {many}>x"), format!("<p {}>x", many.replace(' ', "=''")), format!("<p x=\"y\" {many}")]
    {
        let error = read(&html, &Hint::default(), &Limits::default()).unwrap_err();
        assert_eq!(error.code(), "too_much");
    }
    let script = format!("<p>Some words.</p><script>if (a<b) {{ {many} }}</script><p>And more.</p>");
    assert_eq!(page(&script).text, "Some words.\n\nAnd more.");
}

#[test]
fn a_page_says_what_it_is() {
    let read = page(
        "<html lang=en-GB><head><title>On salt - The Paper</title><meta property=og:site_name content='The Paper'>\
         <meta name=citation_author content='Moss, Ada'><meta name=citation_author content='Ode, Ben'>\
         <meta name=citation_doi content='doi:10.5555/Salt.1'><meta name=citation_publication_date content='2024/3'>\
         <link rel=license href='/by'></head><body><p>Text.</p>",
    );
    assert_eq!(read.title.as_deref(), Some("On salt"));
    assert_eq!(read.author.as_deref(), Some("Moss, Ada; Ode, Ben"));
    assert_eq!(read.doi.as_deref(), Some("10.5555/salt.1"));
    assert_eq!(read.published_at.as_deref(), Some("2024-03"));
    assert_eq!(read.license.as_deref(), Some("https://site.example/by"));
    assert_eq!(read.language.as_deref(), Some("en"));
    let data = page(
        "<script type=application/ld+json>{\"@graph\":[{\"@type\":\"Organization\",\"name\":\"X\"},{\"@type\":\
         [\"NewsArticle\"],\"headline\":\"H\",\"author\":[{\"name\":\"A\"},\"B\"],\"datePublished\":\"2023-01-02T03:04Z\",\
         \"publisher\":{\"name\":\"P\"}}]}</script><p>Text.",
    );
    assert_eq!((data.title.as_deref(), data.author.as_deref()), (Some("H"), Some("A, B")));
    assert_eq!((data.published_at.as_deref(), data.site_name.as_deref()), (Some("2023-01-02"), Some("P")));
}

/// A page with enough around its text to be one.
fn article(before: &str, within: &str, after: &str) -> String {
    let one = "The council of the small town met on Monday to talk about the bridge and about what it costs to mend it.";
    let two =
        "Nobody spoke against the plan, which had been drawn up in the spring and needs no new land at all.";
    format!(
        "<title>A bridge is mended</title><article>{before}<p>{one}</p>{within}<p>{two}</p>{after}</article>"
    )
}

#[test]
fn the_title_is_not_repeated_in_the_text() {
    for headline in
        ["<h1>A bridge is mended</h1>", "<h2>A Bridge is mended!</h2>", "<h1>A bridge is mended at last</h1>"]
    {
        let read = page(&article(headline, "", ""));
        assert_eq!(read.title.as_deref().map(|title| title.starts_with("A bridge is mended")), Some(true));
        assert!(read.text.starts_with("The council"), "{headline}: {}", read.text);
        assert!(read.markdown.starts_with("The council"), "{headline}: {}", read.markdown);
    }
    let other = page(&article("<h2>What it will cost the town</h2>", "", ""));
    assert!(other.text.starts_with("What it will cost"), "{}", other.text);
    let alone = page("<title>A bridge is mended</title><h1>A bridge is mended</h1>");
    assert_eq!(alone.text, "A bridge is mended");
}

#[test]
fn dates_names_and_credits_around_the_text_are_none_of_it() {
    let plain = page(&article("", "", "")).text;
    for before in [
        "<p>Published 4 March 2026, 10:15</p>",
        "<p>12. Januar 2026</p>",
        "<p>Ada Moss</p>",
        "<p>Photo: Ben Ode / Press</p>",
        "<div class=post-date>yesterday, in the evening</div>",
    ] {
        assert_eq!(page(&article(before, "", "")).text, plain, "{before}");
    }
    for after in [
        "<p>Tags: bridges</p>",
        "<h3>About the author</h3><p>Ada Moss has written about bridges for this paper since the year in which she left school, and likes them.</p>",
        "<p>Share this</p>",
        "<p>Follow us on the network of your choice for more news of bridges.</p>",
    ] {
        assert_eq!(page(&article("", "", after)).text, plain, "{after}");
    }
    // A date within a sentence is what the sentence is about.
    let fact = "<p>On 4 March 2026 the first stone was laid by the mayor.</p>";
    assert!(page(&article("", fact, "")).text.contains("first stone"));
}

#[test]
fn links_that_lead_away_are_no_text_but_lists_are() {
    let plain = page(&article("", "", "")).text;
    for within in [
        "<p>More on this:</p><ul><li><a href=/a>The bridge in old pictures</a><li><a href=/b>What a bridge costs</a></ul>",
        "<div><a href=/a><h4>The bridge in old pictures</h4><p>See what it looked like.</p></a></div>",
    ] {
        assert_eq!(page(&article("", within, "")).text, plain, "{within}");
    }
    let list = "<ul><li>Steel from the <a href=/a>works</a> in the valley<li><a href=/b>Oak</a></ul>";
    assert!(page(&article("", list, "")).text.contains("Oak"));
}

#[test]
fn captions_stay_where_the_text_counts_them() {
    let figure =
        |caption: &str| format!("<figure><img src=/x.jpg><figcaption>{caption}</figcaption></figure>");
    let news = page(&article("", &figure("The bridge on a fine day in June."), ""));
    assert!(!news.text.contains("fine day"), "{}", news.text);
    assert_eq!(news.images[0].alt_text.as_deref(), Some("The bridge on a fine day in June."));
    for caption in ["Figure 2: Load on the pier.", "Abb. 3. Load on the pier.", "2.1 Load on the pier."] {
        assert!(page(&article("", &figure(caption), "")).text.contains("Load on"), "{caption}");
    }
}
