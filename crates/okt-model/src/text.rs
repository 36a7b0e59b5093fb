//! What people call things: text that shows what it is.

use unicode_normalization::UnicodeNormalization;

use crate::{Error, Result};

/// The name that somebody gives to something: of `least` to `most` characters, without those that hide or reorder
/// others, which could make it look like another name.
pub fn checked_name(field: &'static str, text: &str, least: usize, most: usize) -> Result<String> {
    let name = plain(text);
    let length = name.chars().count();
    if text.trim().chars().any(char::is_control) || !(least..=most).contains(&length) {
        let many = if least == 0 { format!("at most {most}") } else { format!("{least} to {most}") };
        let message = format!("must be {many} visible characters without control characters");
        return Err(Error::invalid(field, message));
    }
    Ok(name)
}

/// Without characters that hide or reorder others, and with single blanks between words.
pub fn plain(text: &str) -> String {
    let shown: String = text.nfc().filter(|c| !is_hidden(*c)).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character is not seen itself, or changes how others are seen: controls, zero widths, fillers, marks of
/// direction, selectors of variants, tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
                | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
                | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_what_it_is() {
        for (given, shown) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("  Ada \u{2003} Lovelace ", "Ada Lovelace"),
            ("evil\u{202e}gnp.exe", "evilgnp.exe"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("\u{2066}isolated\u{2069}", "isolated"),
            ("\u{fff0}specials\u{1bca0}and\u{1d173}musical", "specialsandmusical"),
            ("e\u{301}te\u{301}", "\u{e9}t\u{e9}"),
            ("日本語", "日本語"),
            (" Ada\n", "Ada"),
        ] {
            assert_eq!(checked_name("name", given, 1, 200).unwrap(), shown, "{given:?}");
        }
        for given in ["", " ", "\u{3164}\u{115f}\u{2800}", "a\nb", "a\u{0}b", &"x".repeat(201)] {
            assert!(checked_name("name", given, 1, 200).is_err(), "{given:?}");
        }
        assert_eq!(checked_name("name", "\u{200b}", 0, 200).unwrap(), "");
        assert!(checked_name("name", &"\u{200b}x".repeat(200), 1, 200).is_ok(), "what is seen is counted");
    }
}
