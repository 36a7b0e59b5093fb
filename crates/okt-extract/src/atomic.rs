//! Whether a fact is one claim, as far as its shape tells.
//!
//! A small model that is asked for the facts of a page likes to give the page back as one "fact". Nothing can be merged with
//! it, checked against it or cited by it, so it is refused, whoever wrote it.

use crate::reason::Reason;

/// In characters. The longest single claims of news articles and papers have about 350.
pub(crate) const LONGEST_FACT: usize = 400;
/// Of sentences in a fact: the second may say of what the first speaks.
const MOST_SENTENCES: usize = 2;

/// Why a fact is more than one claim.
pub(crate) fn is_atomic(text: &str) -> Result<(), Reason> {
    if text.chars().nth(LONGEST_FACT).is_some() {
        return Err(Reason::TooLong);
    }
    if sentences(text) > MOST_SENTENCES {
        return Err(Reason::NotAtomic);
    }
    Ok(())
}

/// Counted rather too low: what may be an abbreviation ends no sentence.
fn sentences(text: &str) -> usize {
    let mut words = text.split_whitespace().peekable();
    let mut ends = 0;
    while let Some(word) = words.next() {
        let Some(next) = words.peek() else { break };
        let next_begins = next.trim_start_matches(['"', '“', '(', '\'']).starts_with(char::is_uppercase);
        if next_begins && ends_sentence(word) {
            ends += 1;
        }
    }
    let without_spaces = text.matches(['。', '！', '？']).count().saturating_sub(1);
    1 + ends + without_spaces
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '”', ')', '\'']);
    let Some(stem) = word.strip_suffix(['.', '!', '?']) else { return false };
    if !word.ends_with('.') {
        return true;
    }
    // `Dr.`, `U.S.`, `J.` and `No.` are short, have a capital or a full stop inside; a sentence rarely ends so.
    stem.chars().count() > 2 && !stem.contains('.') && !stem.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_may_have_abbreviations_and_a_second_sentence() {
        for text in [
            "Dr. H. Aalto of the U.S. Navy measured 4.5 mg. of salt in St. John's in Jan. 1987.",
            "The Rance station has 24 turbines. Each of the turbines has 10 megawatts.",
            "\"We thought the rope was wrong,\" Aalto said. The rope was right.",
            "潮汐是由月球引起的。太阳也有贡献。",
        ] {
            assert_eq!(is_atomic(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_page_is_no_fact() {
        let page = "The tide comes in twice a day. The bowl tips then. Everything moves a little.";
        assert_eq!(is_atomic(page), Err(Reason::NotAtomic));
        assert_eq!(is_atomic("潮汐来了。碗倾斜了。一切都动了。"), Err(Reason::NotAtomic));
        assert_eq!(is_atomic(&"tide ".repeat(100)), Err(Reason::TooLong));
    }
}
