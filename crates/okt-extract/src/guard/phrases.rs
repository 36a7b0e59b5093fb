//! Phrases that are read as one word, as a comparison, or as nothing.

use super::numerals;
use super::tables::Language;
use super::words::{Kind, Token};

pub fn join(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let Some((length, reading)) = phrase(&tokens[at..], language) else {
            out.push(tokens[at].take());
            at += 1;
            continue;
        };
        for word in reading {
            let first = &tokens[at];
            out.push(Token { capital: first.capital, opens: first.opens, ..read(word, language) });
        }
        at += length;
    }
    out
}

fn phrase<'a>(tokens: &[Token], language: &'a Language) -> Option<(usize, &'a [String])> {
    let first = tokens.first().filter(|token| token.is_word())?;
    let phrases = language.phrases.get(&first.text)?;
    let (words, reading) = phrases.iter().find(|(words, _)| {
        tokens.len() >= words.len()
            && tokens.iter().zip(words).all(|(token, word)| token.is_word() && token.text == *word)
    })?;
    Some((words.len(), reading))
}

fn read(word: &str, language: &Language) -> Token {
    let chars: Vec<char> = word.chars().collect();
    if chars.first().is_some_and(char::is_ascii_digit) {
        return numerals::read(&chars, 0, true).0;
    }
    let is_mark = word.contains(['<', '>']);
    let kind = if is_mark { Kind::Mark } else { Kind::Word };
    Token { kind, ..Token::word(word, language) }
}
