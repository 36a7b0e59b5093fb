//! Throws spoilt fixtures at the readers until the time is up: `reader fuzz SECONDS [SEED [FIRST]]`.
//!
//! Ends with the seed and the number of what broke if a promise does not hold, if something panics, or if one input takes
//! more than five seconds. The same seed makes the same inputs; with `FIRST` the inputs before it are passed over.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use okt_parse::worker::Head;
use okt_parse::{Document, Hint, Limits, ParseError};

const SOUP: [&str; 40] = [
    "<div>",
    "</div>",
    "<p>",
    "</p>",
    "<table><tr><td>",
    "</table>",
    "<a href='javascript:x'>",
    "</a>",
    "<b>",
    "</i>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<![CDATA[",
    "<svg><title>",
    "</svg>",
    "<pre>",
    "<ul><li>",
    "</ul>",
    "<br><br>",
    "<title>",
    "<textarea>",
    "<h1>",
    "&#0;",
    "&lt;script&gt;",
    "\u{0}",
    "\u{202e}",
    "。",
    ". ",
    "! ",
    "\"",
    "(",
    "```",
    "---\n",
    "\n\n",
    "<x",
    "='\"",
    "<img src=data:image/png;base64,AAAA>",
    "[a](javascript:b)",
];

/// What the watchman looks at: which input, and since when in milliseconds.
static CASE: AtomicU64 = AtomicU64::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or(0)
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
pub fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(2);
    let seconds: u64 = arguments.next().ok_or("how many seconds?")?.parse()?;
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    println!("seed {seed}");
    let mut seeds = Vec::new();
    for folder in ["fixtures", "gold"] {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end != "json") {
                seeds.push((path.clone(), std::fs::read(path)?));
            }
        }
    }
    seeds.sort();
    let began = Instant::now();
    std::thread::spawn(move || watch(seed, began));
    let first: u64 = arguments.next().map_or(Ok(0), |first| first.parse())?;
    let mut count = first;
    let mut slowest = Duration::ZERO;
    while began.elapsed().as_secs() < seconds {
        // Each input has its own generator, so that one can be made again alone.
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(count));
        let input = spoil(&seeds, &mut random);
        CASE.store(count, Ordering::Relaxed);
        SINCE.store(millis(began), Ordering::Relaxed);
        let one = Instant::now();
        if let Err(fault) = try_one(&input, &mut random) {
            return Err(format!("seed {seed}, input {count}: {fault}").into());
        }
        slowest = slowest.max(one.elapsed());
        count += 1;
    }
    println!("{} inputs in {seconds} s, the slowest in {slowest:?}: nothing broke", count - first);
    Ok(())
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::print_stderr, reason = "nobody else is left to say it")]
fn watch(seed: u64, began: Instant) {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if millis(began).saturating_sub(SINCE.load(Ordering::Relaxed)) > 5_000 {
            eprintln!("seed {seed}, input {}: more than five seconds", CASE.load(Ordering::Relaxed));
            std::process::abort();
        }
    }
}

fn spoil(seeds: &[(std::path::PathBuf, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].1.clone();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => {
                for _ in 0..=random.below(20) {
                    let at = random.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << random.below(8);
                    }
                }
            }
            1 => bytes.truncate(at),
            2 => {
                let other = &seeds[random.below(seeds.len())].1;
                let from = random.below(other.len());
                let to = (from + random.below(2_000)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            3 => {
                let piece = SOUP[random.below(SOUP.len())].repeat(1 + random.below(3_000));
                bytes.splice(at..at, piece.into_bytes());
            }
            4 => {
                let to = (at + random.below(300)).min(bytes.len());
                let piece = bytes[at..to].repeat(1 + random.below(200));
                bytes.splice(at..to, piece);
            }
            5 => {
                let to = (at + random.below(500)).min(bytes.len());
                bytes.drain(at..to);
            }
            _ => {
                for _ in 0..random.below(300) {
                    let at = random.below(bytes.len());
                    bytes.splice(at..at, SOUP[random.below(SOUP.len())].bytes());
                }
            }
        }
        bytes.truncate(4 * 1024 * 1024);
    }
    bytes
}

fn try_one(input: &[u8], random: &mut Random) -> Result<(), String> {
    let types =
        ["text/html", "text/plain; charset=utf-8", "text/markdown", "text/html; charset=shift_jis", ""];
    let content_type = Some(types[random.below(types.len())].to_owned());
    let url = Some("https://site.example/a".to_owned());
    let hint = Hint { content_type, file_name: None, url };
    let head = Head { hint, limits: Limits::default() };
    let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
    // A refusal is an answer.
    if let Ok(document) = okt_parse::parse(engine, input, &head, &mut |_| {}) {
        check(&document)?;
    }
    let text = String::from_utf8_lossy(input);
    check_sentences(&text, &okt_parse::sentences(&text, None))
}

fn check(document: &Document) -> Result<(), String> {
    check_sentences(&document.text, &document.sentences)?;
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if document.text.contains(odd) || document.markdown.contains(odd) {
        return Err("a control character is left".to_owned());
    }
    for (event, range) in pulldown_cmark::Parser::new(&document.markdown).into_offset_iter() {
        use pulldown_cmark::{Event, Tag};
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let before: String = document.markdown[..range.start].chars().rev().take(200).collect();
                let before: String = before.chars().rev().collect();
                return Err(format!("a tag is left in {:?}: {html:?} after {before:?}", document.kind));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if dest_url.trim().to_ascii_lowercase().starts_with("javascript:") =>
            {
                return Err(format!("a script is left: {dest_url}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_sentences(text: &str, sentences: &[(u32, u32)]) -> Result<(), String> {
    let points: Vec<char> = text.chars().collect();
    let mut last = 0;
    let empty = |from: usize, to: usize| points[from..to].iter().all(|c| c.is_whitespace());
    for &(start, end) in sentences {
        let (start, end) = (start as usize, end as usize);
        if start < last || end <= start || end > points.len() || !empty(last, start) {
            return Err(format!("sentence {start}..{end} after {last}"));
        }
        if points[start].is_whitespace() || points[end - 1].is_whitespace() {
            return Err(format!("sentence {start}..{end} is not trimmed"));
        }
        last = end;
    }
    if empty(last, points.len()) { Ok(()) } else { Err(format!("text is lost after {last}")) }
}
