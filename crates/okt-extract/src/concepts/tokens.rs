//! A fact as its words, with what stands between them.

use super::stop;

/// What stands between two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// A space, or nothing.
    None,
    Comma,
    Open,
    Close,
    /// Any other mark.
    Other,
}

/// A word. Hyphens, apostrophes and the dots of abbreviations stay inside of it.
#[derive(Debug)]
pub struct Token<'t> {
    /// As it is written, without a possessive ending.
    pub text: &'t str,
    pub lower: String,
    pub start: usize,
    pub end: usize,
    /// What stands before it.
    pub gap: Gap,
    /// `'s` or `'` was taken off.
    pub possessive: bool,
    /// It begins a sentence or a quotation, where any word has a capital.
    pub first: bool,
}

impl Token<'_> {
    pub fn is_capital(&self) -> bool {
        let mut chars = self.text.chars();
        let first = chars.next().is_some_and(char::is_uppercase);
        // `iPhone`, `mRNA`.
        first || (chars.next().is_some_and(char::is_uppercase) && self.text.len() > 2)
    }

    /// More than one letter, all capitals: an abbreviation.
    pub fn is_short_form(&self) -> bool {
        let letters = self.text.chars().filter(|c| c.is_alphabetic());
        letters.clone().count() > 1 && letters.clone().all(char::is_uppercase)
    }

    /// `H.`
    pub fn is_initial(&self) -> bool {
        let mut letters = self.text.chars().filter(|c| *c != '.');
        self.is_capital() && self.text.ends_with('.') && letters.next().is_some() && letters.next().is_none()
    }

    pub fn has_digit(&self) -> bool {
        self.text.contains(char::is_numeric)
    }

    pub fn is_number(&self) -> bool {
        self.has_digit() && !self.text.starts_with(char::is_alphabetic)
    }

    pub fn is_stop(&self) -> bool {
        stop::is_stop(&self.lower)
    }
}

pub fn tokens(fact: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut chars = fact.char_indices().peekable();
    let mut between = 0;
    while let Some((start, c)) = chars.next() {
        // `Johnson & Johnson`; inside of a word it is a part of it.
        let and = c == '&' && fact[..start].ends_with(' ') && fact[start + 1..].starts_with(' ');
        if !c.is_alphanumeric() && !and {
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some((at, c)) = chars.peek().copied().filter(|_| !and) {
            let inside = c.is_alphanumeric()
                || (matches!(c, '-' | '‑' | '\'' | '’' | '.' | '&' | '+' | ',')
                    && fact[at + c.len_utf8()..].chars().next().is_some_and(char::is_alphanumeric)
                    && joins(&fact[start..at], c, &fact[at + c.len_utf8()..]));
            let dot = c == '.' && is_dotted(&fact[start..at]);
            if !inside && !dot {
                break;
            }
            end = at + c.len_utf8();
            chars.next();
        }
        let gap = gap(&fact[between..start]);
        let marks = &fact[between..start];
        let first =
            tokens.is_empty() || marks.contains(['.', '!', '?', ':', '"', '“', '„', '«', '‘'].as_slice());
        between = end;
        let written = &fact[start..end];
        let stem = written.strip_suffix("'s").or_else(|| written.strip_suffix("’s"));
        let text = stem.unwrap_or(written);
        let after = &fact[end..];
        let bare =
            stem.is_none() && text.ends_with('s') && (after.starts_with("' ") || after.starts_with("’ "));
        tokens.push(Token {
            text,
            lower: text.to_lowercase().replace('’', "'"),
            start,
            end: start + text.len(),
            gap: if tokens.is_empty() && gap == Gap::Other { Gap::None } else { gap },
            possessive: stem.is_some() || bare,
            first,
        });
    }
    tokens
}

/// Whether a mark ties what follows to a word instead of ending it.
fn joins(word: &str, mark: char, after: &str) -> bool {
    match mark {
        ',' => word.ends_with(char::is_numeric) && after.starts_with(char::is_numeric),
        // `U.S`, `3.5`, but not `end.Next`.
        '.' => is_dotted(word) || (word.ends_with(char::is_numeric) && after.starts_with(char::is_numeric)),
        '\'' | '’' => word.ends_with(char::is_alphabetic),
        _ => true,
    }
}

/// Single letters with dots between them, or a title that is written with one.
fn is_dotted(word: &str) -> bool {
    word.split('.').all(|part| part.chars().count() == 1 && part.contains(char::is_uppercase))
        || [
            "Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Jr", "Sr", "Gen", "Sen", "Rep", "Gov", "Inc", "Corp",
            "Ltd", "Co",
        ]
        .contains(&word)
}

fn gap(marks: &str) -> Gap {
    let marks = marks.trim();
    if marks.is_empty() {
        Gap::None
    } else if marks.contains('(') {
        Gap::Open
    } else if marks.contains(')') {
        Gap::Close
    } else if marks == "," {
        Gap::Comma
    } else {
        Gap::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(fact: &str) -> Vec<&str> {
        tokens(fact).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_fact_is_split_into_words() {
        assert_eq!(
            texts("The U.S. maker, Dr. H. Solberg’s, needs 3.5 hours (1,200 times) for KX-114."),
            [
                "The", "U.S.", "maker", "Dr.", "H.", "Solberg", "needs", "3.5", "hours", "1,200", "times",
                "for", "KX-114"
            ]
        );
        assert_eq!(texts("It ends.Next one's"), ["It", "ends", "Next", "one"]);
        assert_eq!(texts(""), Vec::<&str>::new());
    }

    #[test]
    fn what_stands_between_words_is_known() {
        let tokens = tokens("“Bees (Apis), wasps; Curies' ants. End");
        let gaps: Vec<Gap> = tokens.iter().map(|token| token.gap).collect();
        assert_eq!(gaps, [Gap::None, Gap::Open, Gap::Close, Gap::Other, Gap::Other, Gap::Other]);
        let firsts: Vec<bool> = tokens.iter().map(|token| token.first).collect();
        assert_eq!(firsts, [true, false, false, false, false, true]);
        assert!(tokens[3].possessive && !tokens[2].possessive);
    }
}
