//! Numbers as people write them.
//!
//! `1,000` may be a thousand or one, and `12 000` twelve thousand or two numbers. A text is taken to hold every number that
//! it may mean; a number is in it if one of its own meanings is.

use std::collections::HashSet;

/// More groups with spaces between them are a table and no number.
const MOST_GROUPS: usize = 6;

/// Adds all that the numbers of a text may mean, each as digits with at most one full stop.
pub fn meanings(text: &str, meanings: &mut HashSet<String>) {
    for run in runs(text) {
        let together = (run.len() > 1).then(|| joined(&run));
        for number in run.iter().chain(&together) {
            let readings = number.readings();
            if readings.is_empty() {
                meanings.extend(number.groups.iter().map(|group| whole(group)));
            }
            meanings.extend(readings.iter().filter_map(|reading| before_note(reading)));
            meanings.extend(readings);
        }
    }
}

/// Whether all numbers of a text are among those of another.
pub fn are_among(text: &str, meanings: &HashSet<String>) -> bool {
    let known = |number: &Number| {
        let readings = number.readings();
        let parts = || number.groups.iter().all(|group| meanings.contains(&whole(group)));
        readings.iter().any(|reading| meanings.contains(reading)) || (readings.is_empty() && parts())
    };
    runs(text).iter().all(|run| run.iter().all(known) || (run.len() > 1 && known(&joined(run))))
}

/// Groups of digits with single marks between them: `1,200.5`, `12.05.2020`.
#[derive(Clone, Debug, Default)]
struct Number {
    groups: Vec<String>,
    marks: Vec<char>,
}

impl Number {
    /// What it may mean; nothing if it is no one number, like a date or a version.
    fn readings(&self) -> Vec<String> {
        let Some((last, front)) = self.groups.split_last() else { return Vec::new() };
        if front.is_empty() {
            return vec![whole(last)];
        }
        let mut readings = Vec::new();
        if are_thousands(&self.groups, &self.marks) && last.len() == 3 {
            readings.push(whole(&self.groups.concat()));
        }
        let (point, marks) = (self.marks[front.len() - 1], &self.marks[..front.len() - 1]);
        let is_whole = marks.is_empty() || (are_thousands(front, marks) && !marks.contains(&point));
        if matches!(point, '.' | ',' | '٫') && is_whole {
            readings.push(decimal(&front.concat(), last));
        }
        readings
    }
}

/// `1,200`, `1.200`, `1’200`, `1 200` and `12,00,000`.
fn are_thousands(groups: &[String], marks: &[char]) -> bool {
    let same = marks.iter().all(|mark| *mark == marks[0] && *mark != '٫');
    let first = groups[0].len() <= 3 && !groups[0].starts_with('0');
    same && first && groups[1..].iter().all(|group| (2..=3).contains(&group.len()))
}

fn whole(digits: &str) -> String {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
}

fn decimal(digits: &str, fraction: &str) -> String {
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole(digits) } else { format!("{}.{fraction}", whole(digits)) }
}

/// The mark of a note sticks to the full stop when a page is flattened: `in 1998.12` may be `in 1998.`, note 12.
fn before_note(reading: &str) -> Option<String> {
    let (digits, _) = reading.split_once('.')?;
    (digits.len() >= 3).then(|| digits.to_owned())
}

/// The numbers of a text; those that may be the thousands of one number are together.
fn runs(text: &str) -> Vec<Vec<Number>> {
    if !text.contains(|c| digit(c).is_some()) {
        return Vec::new();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut runs: Vec<Vec<Number>> = Vec::new();
    let mut at = 0;
    let mut last_end = None;
    while at < chars.len() {
        if digit(chars[at]).is_none() {
            at += 1;
            continue;
        }
        let start = at;
        let mut number = number(&chars, &mut at);
        if is_bare_fraction(&chars[..start]) {
            number.groups.insert(0, "0".to_owned());
            number.marks.insert(0, '.');
        }
        let near = last_end.is_some_and(|end| end + 1 == start && is_space(chars[end]));
        match runs.last_mut() {
            Some(run) if near && goes_on(run, &number) => run.push(number),
            _ => runs.push(vec![number]),
        }
        last_end = Some(at);
    }
    runs
}

/// `.003`: a full stop that ends nothing.
fn is_bare_fraction(before: &[char]) -> bool {
    match before {
        ['.'] => true,
        [.., last, '.'] => !last.is_alphanumeric() && *last != '.',
        _ => false,
    }
}

fn goes_on(run: &[Number], next: &Number) -> bool {
    // Those before the last were plain, or it would not have been joined to them.
    let plain = run.last().is_some_and(|number| number.marks.is_empty());
    plain && run.len() < MOST_GROUPS && run[0].groups[0].len() <= 3 && next.groups[0].len() == 3
}

fn joined(run: &[Number]) -> Number {
    let mut all = Number::default();
    for number in run {
        if !all.groups.is_empty() {
            all.marks.push(' ');
        }
        all.groups.extend_from_slice(&number.groups);
        all.marks.extend_from_slice(&number.marks);
    }
    all
}

fn number(chars: &[char], at: &mut usize) -> Number {
    let mut number = Number::default();
    loop {
        let raised = digit(chars[*at]).is_some_and(|(_, raised)| raised);
        let mut group = String::new();
        while let Some((value, _)) =
            chars.get(*at).and_then(|c| digit(*c)).filter(|(_, is_raised)| *is_raised == raised)
        {
            group.push(value);
            *at += 1;
        }
        number.groups.push(group);
        let mark = chars.get(*at).map(|c| if *c == '’' { '\'' } else { *c });
        let follows = chars.get(*at + 1).and_then(|c| digit(*c)).is_some_and(|(_, raised)| !raised);
        match mark {
            Some(mark @ ('.' | ',' | '\'' | '٫' | '٬')) if follows && !raised => number.marks.push(mark),
            _ => return number,
        }
        *at += 1;
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

/// The zeros of scripts in which numbers are written in tens.
const ZEROS: [u32; 19] = [
    0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20,
    0x1040, 0x17e0, 0x1810, 0xff10,
];

/// The digit, and whether it stands above or below the line: `10⁶` is no 106.
fn digit(c: char) -> Option<(char, bool)> {
    let of = |value: u32, raised| char::from_digit(value, 10).map(|value| (value, raised));
    match c {
        '0'..='9' => Some((c, false)),
        c if c.is_ascii() => None,
        '²' => of(2, true),
        '³' => of(3, true),
        '¹' => of(1, true),
        '⁰' | '⁴'..='⁹' => of(c as u32 - 0x2070, true),
        '₀'..='₉' => of(c as u32 - 0x2080, true),
        c if c.is_numeric() => {
            let zero = ZEROS.into_iter().find(|zero| (*zero..zero + 10).contains(&(c as u32)))?;
            of(c as u32 - zero, false)
        }
        _ => None,
    }
}
