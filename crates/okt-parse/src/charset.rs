//! From bytes to characters.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// A page says its encoding near its start or not at all.
const HEAD: usize = 4_096;

/// The text of a file. Its own marks come first, then what can only be UTF-8, then what the server and the page say if
/// the bytes agree, and at last a guess.
pub fn decode(bytes: &[u8], content_type: Option<&str>) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned();
    }
    let utf8 = std::str::from_utf8(bytes);
    if let Ok(text) = utf8
        && !text.is_ascii()
    {
        return text.to_owned();
    }
    let claims = [content_type.and_then(parameter), in_page(&bytes[..bytes.len().min(HEAD)])];
    let claims = claims.into_iter().flatten();
    let claims: Vec<_> = claims.filter_map(|label| Encoding::for_label(label.as_bytes())).collect();
    for encoding in &claims {
        let (text, _, faulty) = encoding.decode(bytes);
        if !faulty {
            return text.into_owned();
        }
    }
    if let Ok(text) = utf8 {
        return text.to_owned();
    }
    // A few broken bytes in a long text do not make it another encoding.
    let text = String::from_utf8_lossy(bytes);
    let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let sound = text.chars().filter(|c| !c.is_ascii()).count() - broken;
    if broken * 10 <= sound || (claims.contains(&UTF_8) && broken <= sound) {
        return text.into_owned();
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Deny).decode(bytes).0.into_owned()
}

/// Whether the encoding that a server or a mark names has zeros in ordinary text.
pub fn is_wide(bytes: &[u8], content_type: Option<&str>) -> bool {
    let claim = content_type.and_then(parameter).and_then(|label| Encoding::for_label(label.as_bytes()));
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    marked.or(claim).is_some_and(|encoding| encoding.name().starts_with("UTF-16"))
}

fn parameter(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// `<meta charset=…>`, `<meta http-equiv … content="…; charset=…">` or `<?xml … encoding=…?>`.
fn in_page(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let after = |from: &str, word: &str| {
        let rest = from[from.find(word)? + word.len()..].trim_start().strip_prefix('=')?.trim_start();
        let label = rest.trim_start_matches(['"', '\'']);
        let end =
            label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c))).unwrap_or(label.len());
        (end > 0).then(|| label[..end].to_owned())
    };
    if let Some(start) = head.trim_start().strip_prefix("<?xml") {
        let declaration = &start[..start.find("?>").unwrap_or(0)];
        if let Some(label) = after(declaration, "encoding") {
            return Some(label);
        }
    }
    head.match_indices("<meta").find_map(|(at, _)| {
        let tag = &head[at..];
        after(&tag[..tag.find('>').unwrap_or(tag.len())], "charset")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSSIAN: &str = "Комиссия решила закрыть мост весной.";

    fn bytes(label: &str, text: &str) -> Vec<u8> {
        Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
    }

    #[test]
    fn a_mark_then_the_server_then_the_page_says_the_encoding() {
        let plain = bytes("windows-1251", RUSSIAN);
        assert_eq!(decode(&plain, Some("text/plain; charset=\"Windows-1251\"")), RUSSIAN);
        let page =
            format!("<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>{RUSSIAN}");
        assert_eq!(decode(&bytes("windows-1251", &page), None), page);
        // One letter, which no guess gets right.
        assert_eq!(decode(b"\x8a", Some("text/plain; charset=macintosh")), "ä");
        assert_eq!(decode(b"<meta charset=macintosh>\x8a", None), "<meta charset=macintosh>ä");
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(RUSSIAN.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decode(&wide, Some("text/plain; charset=utf-8")), RUSSIAN);
    }

    #[test]
    fn the_bytes_win_over_a_wrong_claim() {
        assert_eq!(decode(RUSSIAN.as_bytes(), Some("text/html; charset=iso-8859-1")), RUSSIAN);
        let japanese = "これは日本語の文章です。文字コードを調べるために書かれました。";
        assert_eq!(decode(&bytes("shift_jis", japanese), Some("text/html; charset=utf-8")), japanese);
    }

    #[test]
    fn one_broken_byte_does_not_spoil_the_rest() {
        let mut broken = format!("{RUSSIAN} {RUSSIAN}").into_bytes();
        broken.push(0xc3);
        assert!(decode(&broken, None).starts_with(RUSSIAN));
    }
}
