//! Characters that have no business in a text.

/// Line breaks become `\n`; control characters other than `\n` and `\t` go, and with them the marks that may not be in a
/// text at all.
pub fn characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// One line, every run of white space one space, and not longer than so many code points; `None` if nothing is left.
pub fn line(text: &str, longest: usize) -> Option<String> {
    let mut out = String::new();
    let mut points = 0;
    for word in characters(text).split_whitespace() {
        let length = word.chars().count();
        if points + length > longest {
            if out.is_empty() {
                out.extend(word.chars().take(longest));
            }
            break;
        }
        if !out.is_empty() {
            out.push(' ');
            points += 1;
        }
        out.push_str(word);
        points += length;
    }
    (!out.is_empty()).then_some(out)
}

/// Lines without white space at their ends and never two empty lines in a row.
pub fn paragraphs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(line);
    }
    out
}

/// A DOI in one of the forms in which people write one, in lower case.
pub fn doi(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = [
        "https://doi.org/",
        "http://doi.org/",
        "https://dx.doi.org/",
        "http://dx.doi.org/",
        "doi:",
        "info:doi/",
    ]
    .iter()
    .find_map(|prefix| text.strip_prefix(prefix))
    .unwrap_or(&text)
    .trim();
    let (registrant, rest) = text.strip_prefix("10.")?.split_once('/')?;
    let number =
        (4..=9).contains(&registrant.len()) && registrant.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let fits = !rest.is_empty()
        && text.len() <= 256
        && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    (number && fits).then(|| text.to_owned())
}

/// The date at the start of a text, as far as it is told: `2026-03-01T10:00Z` is `2026-03-01`, `2026/3` is `2026-03`.
pub fn date(text: &str) -> Option<String> {
    let text = text.trim();
    let mut parts = text.split(['-', '/', '.']);
    let year = parts.next()?;
    if year.len() == 8 && year.bytes().all(|b| b.is_ascii_digit()) {
        return date(&format!("{}-{}-{}", &year[..4], &year[4..6], &year[6..]));
    }
    let head: String = year.chars().take_while(char::is_ascii_digit).collect();
    if head.len() != 4 || !("1000"..="2999").contains(&head.as_str()) {
        return None;
    }
    let number = |part: Option<&str>, most: u32| {
        let digits: String = part?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok().filter(|n| digits.len() <= 2 && (1..=most).contains(n))
    };
    if year.len() != 4 {
        return Some(head);
    }
    let Some(month) = number(parts.next(), 12) else { return Some(head) };
    let Some(day) = number(parts.next(), 31) else { return Some(format!("{head}-{month:02}")) };
    Some(format!("{head}-{month:02}-{day:02}"))
}
