//! Where entries, fields and their values begin and end. Braces are counted as `BibTeX` counts them: one behind a
//! backslash too.

use super::super::DEEPEST;

/// `@kind{body}`.
pub struct Cut<'t> {
    pub kind: &'t str,
    /// Of the `@`, in bytes.
    pub start: usize,
    pub body: Result<&'t str, Wrong<'t>>,
}

/// What is the matter with an entry, and what can be told of it nevertheless.
pub enum Wrong<'t> {
    Open(&'t str),
    Deep(&'t str),
}

/// A part of a value: between braces or quotation marks, or the name of a `@string`. Numbers are names that nobody
/// defines.
pub enum Piece<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// Everything in a text that looks like an entry. What stands between entries is nobody's, and so is the rest of a line
/// behind a `%`.
pub fn cut(text: &str) -> impl Iterator<Item = Cut<'_>> {
    let (mut at, mut comment) = (0, false);
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find('@')?;
            let between = &text[at..start];
            comment = match between.rfind('\n') {
                Some(end) => between[end..].contains('%'),
                None => comment || between.contains('%'),
            };
            let Some((kind, inner)) = opening(&text[start..]).filter(|_| !comment) else {
                at = start + 1;
                continue;
            };
            let (body, end) = body(text, start + inner);
            (at, comment) = (end, false);
            return Some(Cut { kind, start, body });
        }
    })
}

/// The kind of the entry that begins here, and where its body begins.
pub fn opening(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix('@')?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let kind = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic())?];
    let behind = rest[kind.len()..].trim_start_matches([' ', '\t']);
    (!kind.is_empty() && behind.starts_with(['{', '('])).then(|| (kind, text.len() - behind.len() + 1))
}

/// The body that begins here, and where to go on. An entry that begins a line ends one that nobody closed.
fn body(text: &str, start: usize) -> (Result<&str, Wrong<'_>>, usize) {
    let bytes = text.as_bytes();
    let round = bytes[start - 1] == b'(';
    let (mut depth, mut deepest) = (0, 0);
    let (mut quoted, mut last) = (false, 0);
    for (offset, byte) in bytes[start..].iter().enumerate() {
        let at = start + offset;
        let closes = depth == 0 && !quoted && *byte == if round { b')' } else { b'}' };
        match byte {
            _ if closes => {
                let inner = &text[start..at];
                return (if deepest > DEEPEST { Err(Wrong::Deep(inner)) } else { Ok(inner) }, at + 1);
            }
            b'@' if bytes[at - 1] == b'\n' && opening(&text[at..]).is_some() => {
                return (Err(Wrong::Open(&text[start..at])), at);
            }
            b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' => depth = depth.saturating_sub(1),
            b'"' if depth == 0 && quoted => quoted = is_accent(bytes, at),
            b'"' if depth == 0 => quoted = matches!(last, b'=' | b'#'),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
    }
    (Err(Wrong::Open(&text[start..])), text.len())
}

/// `"G\"odel"` is wrong and yet written; the mark behind the backslash does not end the value.
fn is_accent(bytes: &[u8], at: usize) -> bool {
    at > 0
        && bytes[at - 1] == b'\\'
        && bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'{')
}

/// The citation key and what follows it. Some programs write none, or not even its comma.
pub fn key(body: &str) -> (&str, &str) {
    let body = body.trim_start();
    let end = body.find([',', '=', '\n']).unwrap_or(body.len());
    let (key, rest) = body.split_at(end);
    match rest.chars().next() {
        Some('=') => ("", body),
        // The comma may stand on the next line, or be missing there.
        Some('\n') => (key.trim(), rest.trim_start().strip_prefix(',').unwrap_or(rest)),
        _ => (key.trim(), rest.strip_prefix(',').unwrap_or(rest)),
    }
}

/// The fields of a body behind its key, or what is the matter with it.
pub fn fields(body: &str) -> Result<Vec<(&str, Vec<Piece<'_>>)>, String> {
    let mut fields: Vec<(&str, Vec<Piece<'_>>)> = Vec::new();
    let mut rest = body;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return Ok(fields);
        }
        if rest.starts_with('%') {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || "={},\"#%()".contains(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let Some(value) = behind.trim_start().strip_prefix('=').filter(|_| !name.is_empty()) else {
            let seen: String = rest.chars().take(20).take_while(|c| *c != '\n').collect();
            let after =
                fields.last().map_or_else(String::new, |(name, _)| format!(" behind the field {name}"));
            return Err(format!("“name = value” is missing{after}, where it says “{seen}”; correct it"));
        };
        let (pieces, behind) =
            value_at(value).ok_or_else(|| format!("the field {name} has no value; give it one"))?;
        fields.push((name, pieces));
        rest = behind;
    }
}

/// Pieces with `#` between them, and what follows.
fn value_at(mut rest: &str) -> Option<(Vec<Piece<'_>>, &str)> {
    let mut pieces = Vec::new();
    loop {
        rest = rest.trim_start();
        let (piece, behind) = if let mark @ (b'{' | b'"') = rest.bytes().next()? {
            let end = closing(rest, mark)?;
            (Piece::Text(&rest[1..end]), &rest[end + 1..])
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "={},\"#%".contains(c)).unwrap_or(rest.len());
            (Piece::Name(&rest[..end]), &rest[end..])
        };
        if matches!(piece, Piece::Name("")) {
            return None;
        }
        pieces.push(piece);
        let next = behind.trim_start();
        match next.strip_prefix('#') {
            Some(next) => rest = next,
            None => return Some((pieces, next)),
        }
    }
}

/// Where the value ends that begins with this brace or quotation mark.
fn closing(text: &str, mark: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            b'"' if mark == b'"' && depth == 0 && !is_accent(bytes, at) => return Some(at),
            b'}' if mark == b'{' && depth == 0 => return Some(at),
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
