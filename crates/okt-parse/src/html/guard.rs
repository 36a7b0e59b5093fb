//! The one thing that keeps the tokenizer busy: it compares each attribute of a tag with all before it.

/// Comparisons that are made in a second or two.
const MOST: u64 = 2_000_000_000;

/// Whether the tags of a page have so many attributes that they are there for this alone. Counts too many rather than too
/// few.
pub fn is_hostile(html: &str) -> bool {
    let bytes = html.as_bytes();
    let mut work = 0_u64;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'<') {
        at += found + 1;
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let raw = ["script", "style"].into_iter().find(|name| starts_with(&bytes[at..], name));
        let (end, attributes) = tag(bytes, at);
        at = end;
        work = work.saturating_add(attributes * attributes / 2);
        if work > MOST {
            return true;
        }
        if let Some(name) = raw {
            at = after_raw(bytes, at, name);
        }
    }
    false
}

/// The end of a tag and the number of its attributes.
fn tag(bytes: &[u8], mut at: usize) -> (usize, u64) {
    let mut attributes = 0;
    let mut before = b'<';
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => break,
            // Only a value has quotes; elsewhere they are part of a name.
            b'"' | b'\'' if before == b'=' => {
                at += 1;
                while bytes.get(at).is_some_and(|b| *b != byte) {
                    at += 1;
                }
                attributes += 1;
            }
            b if b.is_ascii_whitespace() || b == b'/' => {
                attributes += u64::from(!(before.is_ascii_whitespace() || before == b'/'));
            }
            _ => {}
        }
        // Space around the sign of equality is allowed.
        if !(byte.is_ascii_whitespace() && before == b'=') {
            before = byte;
        }
        at += 1;
    }
    (at.min(bytes.len()), attributes)
}

fn starts_with(bytes: &[u8], name: &str) -> bool {
    bytes.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
}

/// After the text of a script or a style, which is no markup.
fn after_raw(bytes: &[u8], mut at: usize, name: &str) -> usize {
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'<') {
        at += found + 1;
        if bytes.get(at) == Some(&b'/') && starts_with(&bytes[at + 1..], name) {
            return at;
        }
    }
    bytes.len()
}
