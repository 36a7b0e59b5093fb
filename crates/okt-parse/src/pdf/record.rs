//! What a publisher writes into a file for programs: the XMP packet, which stands in it in plain words.

use crate::clean;

/// Who made it and when it was published, as far as the record says so.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub creators: Vec<String>,
    pub published: Option<String>,
}

/// Where the day of publication stands. When the file was made or changed is another matter.
const DATES: [&str; 3] = ["prism:publicationDate", "prism:coverDate", "prism:onlineDate"];
/// A larger packet is none that says who wrote a paper.
const LONGEST: usize = 256 * 1024;
const MOST_CREATORS: usize = 100;

impl Record {
    pub fn of(file: &[u8]) -> Self {
        let Some(packet) = packet(file) else { return Self::default() };
        let creators = element(&packet, "dc:creator").map(items).unwrap_or_default();
        let published = DATES.iter().find_map(|name| {
            let said =
                element(&packet, name).map(|said| items(said).into_iter().next().unwrap_or(said.to_owned()));
            clean::date(said.or_else(|| attribute(&packet, name))?.trim())
        });
        Self { creators, published }
    }
}

/// The last packet: a file that was changed has its newer one behind the older.
fn packet(file: &[u8]) -> Option<String> {
    let find = |what: &[u8], from: &[u8]| from.windows(what.len()).rposition(|window| window == what);
    let end = find(b"</rdf:RDF>", file)?;
    let start = find(b"<rdf:RDF", &file[end.saturating_sub(LONGEST)..end])? + end.saturating_sub(LONGEST);
    std::str::from_utf8(&file[start..end]).ok().map(str::to_owned)
}

/// What is in the first element of a name.
fn element<'a>(packet: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = packet.split_once(&format!("<{name}"))?;
    let (tag, rest) = rest.split_once('>')?;
    if tag.ends_with('/') {
        return None;
    }
    rest.split_once(&format!("</{name}>")).map(|(content, _)| content)
}

fn attribute(packet: &str, name: &str) -> Option<String> {
    let (_, rest) = packet.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// The entries of a list, as text.
fn items(list: &str) -> Vec<String> {
    let entries = list.split("<rdf:li").skip(1).filter_map(|entry| {
        let (_, rest) = entry.split_once('>')?;
        let (text, _) = rest.split_once("</rdf:li>")?;
        let text =
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty() && !text.contains(char::is_control)).then_some(text)
    });
    entries.take(MOST_CREATORS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_its_authors_and_its_day() {
        let of =
            |packet: &str| Record::of(format!("%PDF-1.7\n\u{fffd}{packet}</rdf:RDF> endstream").as_bytes());
        let list = "<rdf:RDF><dc:creator><rdf:Seq><rdf:li>Ada Moss</rdf:li><rdf:li xml:lang='x'>Zoë &amp; Sons</rdf:li>\
                    </rdf:Seq></dc:creator><prism:publicationDate><rdf:Seq><rdf:li>2024-05-23</rdf:li></rdf:Seq>\
                    </prism:publicationDate>";
        assert_eq!(
            of(list),
            Record {
                creators: vec!["Ada Moss".to_owned(), "Zoë & Sons".to_owned()],
                published: Some("2024-05-23".to_owned())
            }
        );
        let short =
            "<rdf:RDF><rdf:Description prism:coverDate=\"2021-02-03\" xmp:CreateDate=\"2026-01-01\"/>";
        assert_eq!(of(short).published.as_deref(), Some("2021-02-03"));
        assert_eq!(
            of("<rdf:RDF><dc:creator/><xmp:CreateDate>2026-01-01</xmp:CreateDate>"),
            Record::default()
        );
        assert_eq!(Record::of(b"%PDF-1.7 </rdf:RDF>"), Record::default());
    }
}
