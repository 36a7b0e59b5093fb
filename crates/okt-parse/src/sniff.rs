//! What a file is. Its bytes win over what anybody said of it.

use crate::{Hint, Kind, ParseError, charset};

/// Where the marks of a format are looked for.
const HEAD: usize = 4_096;

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// The kind of a file and its media type.
pub fn kind(bytes: &[u8], hint: &Hint) -> Result<(Kind, &'static str), ParseError> {
    let head = &bytes[..bytes.len().min(HEAD)];
    // Some writers put a few bytes before the mark, and readers accept it.
    if head[..head.len().min(1_024)].windows(5).any(|mark| mark == b"%PDF-") && !looks_like_text(hint) {
        return Ok((Kind::Pdf, "application/pdf"));
    }
    if bytes.starts_with(b"%PDF-") {
        return Ok((Kind::Pdf, "application/pdf"));
    }
    match infer::get(bytes).map(|found| (found.mime_type(), found.matcher_type())) {
        Some((DOCX, _)) => return Ok((Kind::Docx, DOCX)),
        // Marks of two letters, which a text may begin with too. Behind them these files have bytes that no text has.
        Some(("image/bmp" | "application/vnd.microsoft.portable-executable" | "application/x-llvm", _))
            if !head.contains(&0) => {}
        Some((_, infer::MatcherType::Text)) | None => {}
        Some((media_type, _)) => return Err(ParseError::Unsupported(media_type.to_owned())),
    }
    if head.contains(&0) && !charset::is_wide(bytes, hint.content_type.as_deref()) {
        return Err(ParseError::Unsupported("neither text nor a known format".to_owned()));
    }
    let start = charset::decode(head, hint.content_type.as_deref());
    text_kind(&start, hint)
}

fn text_kind(start: &str, hint: &Hint) -> Result<(Kind, &'static str), ParseError> {
    let said = said(hint);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let tag = first_tag(start);
    let html = (Kind::Html, "text/html");
    if matches!(tag.as_str(), "!doctype" | "html" | "head" | "body") && !start.contains("<svg xmlns") {
        return Ok(html);
    }
    if matches!(tag.as_str(), "svg" | "rss" | "feed") || (start.starts_with("<?xml") && tag != "html") {
        return Err(ParseError::Unsupported(format!("XML ({tag})")));
    }
    if is_markdown(&said, hint) {
        return Ok((Kind::Markdown, "text/markdown"));
    }
    if matches!(said.as_str(), "text/html" | "application/xhtml+xml") {
        return Ok(html);
    }
    // Somebody who says that it is plain text may be showing a tag.
    let names = [".html", ".htm", ".xhtml"];
    let is_page = name(hint).is_some_and(|name| names.iter().any(|end| name.ends_with(end)));
    let common =
        ["title", "meta", "link", "div", "p", "h1", "h2", "table", "article", "main", "section", "script"];
    if is_page || (said != "text/plain" && common.contains(&tag.as_str())) {
        return Ok(html);
    }
    Ok((Kind::Text, "text/plain"))
}

fn said(hint: &Hint) -> String {
    let said = hint.content_type.as_deref().unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn looks_like_text(hint: &Hint) -> bool {
    said(hint).starts_with("text/")
}

/// Of the file, or else the last part of the address.
fn name(hint: &Hint) -> Option<String> {
    if let Some(name) = &hint.file_name {
        return Some(name.to_ascii_lowercase());
    }
    let url = url::Url::parse(hint.url.as_deref()?).ok()?;
    Some(url.path_segments()?.next_back()?.to_ascii_lowercase())
}

fn is_markdown(said: &str, hint: &Hint) -> bool {
    if matches!(said, "text/markdown" | "text/x-markdown") {
        return true;
    }
    // A server that shows the file as a page says HTML.
    said != "text/html"
        && name(hint).is_some_and(|name| [".md", ".markdown", ".mdown"].iter().any(|end| name.ends_with(end)))
}

/// The first tag after comments and declarations, in lower case, or nothing if the text does not begin with one.
fn first_tag(mut text: &str) -> String {
    loop {
        text = text.trim_start();
        let (skip, end) = if text.starts_with("<!--") {
            (4, "-->")
        } else if text.starts_with("<?") {
            (2, "?>")
        } else {
            break;
        };
        let Some(at) = text[skip..].find(end) else { return String::new() };
        text = &text[skip + at + end.len()..];
    }
    let Some(rest) = text.strip_prefix('<') else { return String::new() };
    let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '!').take(16).collect();
    let after = rest[name.len()..].chars().next();
    if after.is_none_or(|c| c.is_whitespace() || c == '>' || c == '/') {
        name.to_ascii_lowercase()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(content_type: &str, file_name: &str) -> Hint {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Hint { content_type: some(content_type), file_name: some(file_name), url: None }
    }

    fn told(bytes: &[u8], content_type: &str, file_name: &str) -> Result<Kind, ParseError> {
        kind(bytes, &hint(content_type, file_name)).map(|(kind, _)| kind)
    }

    #[test]
    fn the_bytes_win_over_what_the_server_said() {
        assert_eq!(told(b"%PDF-1.7\n...", "text/html", "a.html"), Ok(Kind::Pdf));
        assert_eq!(told(b"<!DOCTYPE html><p>x", "text/plain", "a.txt"), Ok(Kind::Html));
        assert_eq!(told(b"<!-- a --><?xml version='1.0'?> <HTML lang=en>", "", ""), Ok(Kind::Html));
        assert!(told(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text/html", "").is_err());
        assert!(told(b"GIF89a\0\0", "text/plain", "").is_err());
        assert!(told(b"some text \0 with a zero", "text/plain", "").is_err());
    }

    #[test]
    fn text_is_told_by_its_start_its_name_and_its_type() {
        assert_eq!(told(b"<div>x</div>", "", ""), Ok(Kind::Html));
        assert_eq!(told(b"<div>x</div>", "text/plain", ""), Ok(Kind::Text));
        assert_eq!(told(b"<h1 align=center>x</h1>\n\nText", "text/plain", "README.md"), Ok(Kind::Markdown));
        assert_eq!(told(b"# x", "text/markdown; charset=utf-8", ""), Ok(Kind::Markdown));
        assert_eq!(
            told(b"BCG vaccination protects against leprosy.", "text/plain", "bcg.txt"),
            Ok(Kind::Text)
        );
        assert_eq!(told(b"just words", "text/html", ""), Ok(Kind::Html));
        assert_eq!(told(b"just words", "", ""), Ok(Kind::Text));
        assert_eq!(told(b"BMW has built cars since 1928.", "text/plain", "bmw.txt"), Ok(Kind::Text));
        assert!(told(b"BM\x36\0\x0c\0\0\0\0\0\x36\0\0\0", "text/plain", "bmw.txt").is_err());
        assert!(told(b"<?xml version='1.0'?><svg xmlns='x'>", "", "").is_err());
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("words".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(told(&wide, "", ""), Ok(Kind::Text));
    }
}
