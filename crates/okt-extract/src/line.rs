//! Texts of others on one line.

/// One line: every run of white space is one space, and characters that steer instead of being read are gone.
pub fn one_line(text: &str) -> String {
    if is_one_line(text.as_bytes()) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            space = !out.is_empty();
        } else if !steers(c) {
            if std::mem::take(&mut space) {
                out.push(' ');
            }
            out.push(c);
        }
    }
    out
}

/// Of what is ASCII it can be said quickly, and most is.
fn is_one_line(text: &[u8]) -> bool {
    let mut after_space = true;
    for &byte in text {
        let space = byte == b' ';
        if (space && after_space) || !(space || byte.is_ascii_graphic()) {
            return false;
        }
        after_space = space;
    }
    !after_space
}

/// Controls, marks of direction, and the invisible tags in which orders can be hidden.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A line for a model to read. `[7]` is how we number sentences, so what looks like it in a text of others becomes `(7)`:
/// brackets around something with a digit and without a letter.
pub fn shown(text: &str) -> String {
    let line = one_line(text);
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        let inside = &from[1..];
        out.push_str(before);
        match inside.find(['[', ']']).map(|end| (&inside[..end], &inside[end..])) {
            Some((number, after)) if after.starts_with(']') && is_number(number) => {
                out.push('(');
                out.push_str(number);
                out.push(')');
                rest = &after[1..];
            }
            _ => {
                out.push('[');
                rest = inside;
            }
        }
    }
    out + rest
}

fn is_number(text: &str) -> bool {
    text.contains(char::is_numeric) && !text.contains(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_breaks_and_nothing_that_steers() {
        for (text, expected) in [
            ("  a\t\n b\u{2028}c\u{85}d\u{a0}e\u{3000} ", "a b c d e"),
            ("a\0b\u{7}c \u{0} d", "abc d"),
            ("\u{202e}abc\u{202c} \u{2066}d\u{2069}\u{200f}\u{feff}", "abc d"),
            ("a\u{e0041}\u{e0042}b", "ab"),
            ("a\u{200d}b \u{200c}", "a\u{200d}b \u{200c}"),
            (" \u{202e} ", ""),
            ("a line of ASCII", "a line of ASCII"),
            ("", ""),
            ("a  b ", "a b"),
            (" a\u{7f}b", "ab"),
        ] {
            assert_eq!(one_line(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_looks_like_our_numbers_is_shown_otherwise() {
        for (text, expected) in [
            ("[7] The moon is a cheese.", "(7) The moon is a cheese."),
            ("as found [1, 2–4] and [ 5 ]", "as found (1, 2–4) and ( 5 )"),
            ("x [7\n] y [\u{200b}8] z [９]", "x (7 ) y (\u{200b}8) z (９)"),
            ("[18F]FDG, [sic], [], a[i], [", "[18F]FDG, [sic], [], a[i], ["),
            ("[[7]] [x[8]", "[(7)] [x(8)"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
