//! What all lists have in common: names, dates, numbers of papers, addresses.

use crate::clean;

/// Of a title and of all authors together, in code points.
const LONGEST: usize = 1_000;

const LONGEST_ADDRESS: usize = 4_096;

pub fn title(text: &str) -> Option<String> {
    clean::line(text, LONGEST)
}

/// As many as fit, whole.
pub fn authors(names: impl IntoIterator<Item = String>) -> Option<String> {
    let mut out = String::new();
    let mut points = 0;
    for name in names {
        let Some(name) = clean::line(&name, LONGEST) else { continue };
        points += name.chars().count() + if out.is_empty() { 0 } else { 2 };
        if points > LONGEST {
            break;
        }
        if !out.is_empty() {
            out.push_str("; ");
        }
        out.push_str(&name);
    }
    (!out.is_empty()).then_some(out)
}

/// `Lovelace, Ada` and `King, Jr., Martin`, the way people say them.
pub fn turned(parts: &[&str]) -> String {
    match parts {
        [last, first] => format!("{first} {last}"),
        [last, suffix, first, ..] => format!("{first} {last} {suffix}"),
        parts => parts.concat(),
    }
}

/// A date of which any part may be wrong; what stands behind a wrong one is not believed.
pub fn date(year: u32, month: Option<u32>, day: Option<u32>) -> Option<String> {
    if !(1_000..=2_999).contains(&year) {
        return None;
    }
    let Some(month) = month.filter(|month| (1..=12).contains(month)) else { return Some(year.to_string()) };
    let days = match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    match day.filter(|day| (1..=days).contains(day)) {
        Some(day) => Some(format!("{year}-{month:02}-{day:02}")),
        None => Some(format!("{year}-{month:02}")),
    }
}

/// A date in words or numbers: `2020-03-01`, `2020/03//Spring`, `March 1, 2020`, `c. 1890`.
pub fn date_in(text: &str) -> Option<String> {
    let written = clean::date(text).and_then(|found| {
        let mut numbers = found.split('-').map(|part| part.parse().ok());
        date(numbers.next()??, numbers.next().flatten(), numbers.next().flatten())
    });
    if written.as_ref().is_some_and(|found| found.len() > 4) {
        return written;
    }
    let year = year_in(text)?;
    let (month, day) = month_in(text);
    date(year, month, day)
}

/// The first number of four digits that can be a year.
pub fn year_in(text: &str) -> Option<u32> {
    numbers(text).find(|number| number.len() == 4).and_then(|number| number.parse().ok())
}

/// The month that is named in a text, and with it the day: `March 1`, `10~jan`, `Mar 01 2020`. A number alone is a month
/// too.
pub fn month_in(text: &str) -> (Option<u32>, Option<u32>) {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let day = numbers(text).find(|number| number.len() <= 2).and_then(|number| number.parse().ok());
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() >= 3) {
        let word = word.to_ascii_lowercase();
        if let Some(month) =
            (1..).zip(MONTHS).find_map(|(month, name)| word.starts_with(name).then_some(month))
        {
            return (Some(month), day);
        }
    }
    (text.trim().parse().ok().filter(|month| (1..=12).contains(month)), None)
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty())
}

/// The number of a paper at arXiv, alone, after `arXiv:` or in an address.
pub fn arxiv(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let bare = ["https://", "http://"].iter().find_map(|start| text.strip_prefix(start)).unwrap_or(&text);
    let bare = bare.strip_prefix("www.").unwrap_or(bare);
    let number = ["arxiv.org/abs/", "arxiv.org/pdf/", "arxiv:"]
        .iter()
        .find_map(|start| bare.strip_prefix(start))
        .unwrap_or(bare)
        .trim()
        .trim_end_matches(".pdf");
    is_arxiv(number).then(|| number.to_owned())
}

fn is_arxiv(number: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let paper =
        number.rsplit_once('v').filter(|(_, version)| digits(version)).map_or(number, |(paper, _)| paper);
    let new = paper.split_once('.').is_some_and(|(month, rest)| {
        month.len() == 4 && digits(month) && (4..=5).contains(&rest.len()) && digits(rest)
    });
    let old = paper.split_once('/').is_some_and(|(archive, rest)| {
        let name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'.';
        (2..=16).contains(&archive.len()) && archive.bytes().all(name) && rest.len() == 7 && digits(rest)
    });
    new || old
}

/// The number behind the first `arXiv:` of a text, such as `arXiv preprint arXiv:1706.03762`.
pub fn arxiv_in(text: &str) -> Option<String> {
    arxiv(behind(text, "arxiv:")?.split([' ', ',', ';', '[', ']', '(', ')', '\n']).next()?)
}

pub fn pmid(text: &str) -> Option<String> {
    let text = text.trim();
    let text = behind(text, "pmid:").unwrap_or(text);
    let sound = (1..=8).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0');
    sound.then(|| text.to_owned())
}

/// The number behind the first `PMID:` of a text.
pub fn pmid_in(text: &str) -> Option<String> {
    pmid(numbers(behind(text, "pmid:")?).next()?)
}

fn behind<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    // In ASCII, lower case is as long as upper case, so places are the same.
    let at = text.to_ascii_lowercase().find(mark)?;
    Some(text[at + mark.len()..].trim_start())
}

/// The first address of the web in a text.
pub fn address(text: &str) -> Option<String> {
    let text = clean::characters(text);
    let lower = text.to_ascii_lowercase();
    let at = [lower.find("https://"), lower.find("http://")].into_iter().flatten().min();
    let (before, rest) = match at {
        Some(at) => ("", &text[at..]),
        None if lower.trim_start().starts_with("www.") => ("https://", text.trim_start()),
        None => return None,
    };
    let end = rest.find(|c: char| c.is_whitespace() || "\"<>{}|\\^`".contains(c)).unwrap_or(rest.len());
    let mut found = rest[..end].trim_end_matches(['.', ',', ';', ':', '\'', ']']);
    if !found.contains('(') {
        found = found.trim_end_matches([')', '.', ',', ';']);
    }
    let found = format!("{before}{found}");
    let sound = found.len() <= LONGEST_ADDRESS && url::Url::parse(&found).is_ok_and(|url| url.has_host());
    sound.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_as_far_as_they_are_known() {
        for (text, date) in [
            ("2020-03-01", Some("2020-03-01")),
            ("2020/03/01/", Some("2020-03-01")),
            ("2020/3//Spring", Some("2020-03")),
            ("2020///", Some("2020")),
            ("20200301", Some("2020-03-01")),
            ("2020-05/2021-01", Some("2020-05")),
            ("2020/2021", Some("2020")),
            ("March 1, 2020", Some("2020-03-01")),
            ("1 Sept. 2020", Some("2020-09-01")),
            ("2020 Mar", Some("2020-03")),
            ("c. 1890", Some("1890")),
            ("2023-02-31", Some("2023-02")),
            ("2024-02-29", Some("2024-02-29")),
            ("2020-31-12", Some("2020")),
            ("in press", None),
            ("99", None),
            ("0000-01-01", None),
        ] {
            assert_eq!(date_in(text).as_deref(), date, "{text}");
        }
    }

    #[test]
    fn numbers_and_addresses_are_found_in_what_people_write() {
        assert_eq!(arxiv_in("arXiv preprint arXiv:1706.03762, 2017").as_deref(), Some("1706.03762"));
        assert_eq!(arxiv("http://arxiv.org/pdf/hep-th/9901001v2.pdf").as_deref(), Some("hep-th/9901001v2"));
        assert_eq!(arxiv("10.1000/182"), None);
        assert_eq!(pmid_in("Publisher: X PMID: 24512345; PMCID: PMC1").as_deref(), Some("24512345"));
        assert_eq!(pmid("PMC123"), None);
        assert_eq!(address("see (https://a.example/x).").as_deref(), Some("https://a.example/x"));
        assert_eq!(address("https://a.example/x_(y)").as_deref(), Some("https://a.example/x_(y)"));
        assert_eq!(address("www.a.example/x").as_deref(), Some("https://www.a.example/x"));
        assert_eq!(address("internal-pdf://1/x.pdf"), None);
        assert_eq!(address("http://"), None);
    }

    #[test]
    fn authors_beyond_the_limit_are_left_out_whole() {
        let names = authors((0..200).map(|n| format!("Author Number{n}"))).unwrap();
        assert!(names.chars().count() <= LONGEST && names.ends_with(char::is_numeric), "{names}");
        assert!(names.split("; ").enumerate().all(|(n, name)| name == format!("Author Number{n}")));
    }
}
