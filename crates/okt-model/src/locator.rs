//! What a source is named by: an address, a DOI, or the number of a paper at arXiv or `PubMed`.

use std::borrow::Cow;

use url::{Host, Url};

use crate::permission::words;
use crate::{Error, Result};

words! {
    /// What somebody wrote to name a source.
    ResourceType {
        Arxiv = "arxiv",
        Doi = "doi",
        PdfUrl = "pdf_url",
        Pmid = "pmid",
        Url = "url",
    }
}

/// The name of a source, in the one form in which it is compared, and where to look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    pub resource_type: ResourceType,
    /// Two texts that mean the same have the same one.
    pub normalized: String,
    pub url: String,
    pub doi: Option<String>,
}

/// Longer than any address that is served, so nobody can keep us busy with one.
const LONGEST: usize = 4_096;

impl Locator {
    /// What a text means. Numbers of papers and DOIs are also found in the addresses of the places that are known for
    /// them.
    pub fn parse(text: &str) -> Result<Self> {
        // Written out, an address may be three times as long.
        Self::read(text).and_then(|found| if found.url.len() > LONGEST { Err(not_one()) } else { Ok(found) })
    }

    fn read(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
            return Err(not_one());
        }
        let word = text.to_ascii_lowercase();
        if let Some(doi) = word.strip_prefix("doi:").map(str::trim).or(Some(&word)).and_then(doi) {
            return Ok(Self::of_doi(doi));
        }
        if let Some(number) = word.strip_prefix("arxiv:").map(str::trim).or(Some(&word)).and_then(arxiv) {
            return Ok(Self::of_arxiv(&number));
        }
        if let Some(number) = word.strip_prefix("pmid:").map(str::trim).and_then(pmid) {
            return Ok(Self::of_pmid(number));
        }
        Self::of_address(text)
    }

    fn of_doi(doi: String) -> Self {
        let mut url = Url::parse("https://doi.org").expect("an address of ours");
        url.set_path(&doi);
        Self { resource_type: ResourceType::Doi, normalized: doi.clone(), url: url.into(), doi: Some(doi) }
    }

    fn of_arxiv(number: &str) -> Self {
        // All versions of a paper have one DOI.
        let paper = number
            .rsplit_once('v')
            .filter(|(_, version)| is_number(version))
            .map_or(number, |(paper, _)| paper);
        Self {
            resource_type: ResourceType::Arxiv,
            normalized: format!("arxiv:{number}"),
            url: format!("https://arxiv.org/abs/{number}"),
            doi: Some(format!("10.48550/arxiv.{paper}")),
        }
    }

    fn of_pmid(number: &str) -> Self {
        Self {
            resource_type: ResourceType::Pmid,
            normalized: format!("pmid:{number}"),
            url: format!("https://pubmed.ncbi.nlm.nih.gov/{number}/"),
            doi: None,
        }
    }

    fn of_address(text: &str) -> Result<Self> {
        let url = address(text).ok_or_else(not_one)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::invalid("value", "must not hold a name or a password"));
        }
        let host = url.host_str().unwrap_or_default().trim_start_matches("www.").to_owned();
        let path = url.path().trim_end_matches('/').to_owned();
        let known = match host.as_str() {
            "doi.org" | "dx.doi.org" => {
                doi(&path.trim_start_matches('/').to_ascii_lowercase()).map(Self::of_doi)
            }
            "arxiv.org" | "export.arxiv.org" => path
                .strip_prefix("/abs/")
                .or_else(|| path.strip_prefix("/pdf/"))
                .map(|number| number.trim_end_matches(".pdf").to_ascii_lowercase())
                .and_then(|number| arxiv(&number))
                .map(|number| Self::of_arxiv(&number)),
            "pubmed.ncbi.nlm.nih.gov" => pmid(path.trim_start_matches('/')).map(Self::of_pmid),
            "ncbi.nlm.nih.gov" => path.strip_prefix("/pubmed/").and_then(pmid).map(Self::of_pmid),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let is_pdf = url.path().to_ascii_lowercase().ends_with(".pdf");
        let resource_type = if is_pdf { ResourceType::PdfUrl } else { ResourceType::Url };
        let url = String::from(url);
        Ok(Self { resource_type, normalized: url.clone(), url, doi: None })
    }
}

/// `10.` with the number of who registers, and what they call it. The end of a sentence is not a part of it.
fn doi(text: &str) -> Option<String> {
    let text = percent_decoded(text);
    let text = text.trim_end_matches(['.', ',', ';', ':', '"', '\'', ' ']);
    let (registrant, name) = text.strip_prefix("10.")?.split_once('/')?;
    let sound = (4..=9).contains(&registrant.split('.').next()?.len())
        && registrant.split('.').all(is_number)
        && !name.is_empty()
        && !name.chars().any(|c| c.is_whitespace() || c.is_control());
    sound.then(|| text.to_owned())
}

/// `2101.00001`, `2101.00001v2`, or before 2007 `hep-th/9901001`.
fn arxiv(text: &str) -> Option<String> {
    let (paper, version) = match text.rsplit_once('v') {
        Some((paper, version)) if is_number(version) => (paper, Some(version)),
        _ => (text, None),
    };
    let new = paper.split_once('.').is_some_and(|(month, number)| {
        month.len() == 4 && is_number(month) && (4..=5).contains(&number.len()) && is_number(number)
    });
    let old = paper.split_once('/').is_some_and(|(archive, number)| {
        let (archive, subject) = archive.split_once('.').unwrap_or((archive, "aa"));
        let letters = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        letters(archive)
            && archive.len() <= 10
            && letters(subject)
            && subject.len() == 2
            && number.len() == 7
            && is_number(number)
    });
    let version = version.map(|version| format!("v{version}")).unwrap_or_default();
    (new || old).then(|| format!("{paper}{version}"))
}

fn pmid(text: &str) -> Option<&str> {
    ((1..=8).contains(&text.len()) && is_number(text) && !text.starts_with('0')).then_some(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An address on the web, without what does not change what it shows: the part behind `#`, and what was added to find out
/// who clicked. Where nobody wrote how to get there, it is https.
fn address(text: &str) -> Option<Url> {
    // `example.org:8080/a` reads as a scheme of that name.
    let bare = match Url::parse(text) {
        Ok(url) => !matches!(url.scheme(), "http" | "https") && url.scheme().contains('.'),
        Err(url::ParseError::RelativeUrlWithoutBase) => text.contains('.'),
        Err(_) => return None,
    };
    let mut url = if bare { Url::parse(&format!("https://{text}")) } else { Url::parse(text) }.ok()?;
    let named = match url.host()? {
        Host::Domain(name) => name.contains('.') || (name == "localhost" && !bare),
        // Numbers with a point between them are an address only to whoever says so.
        Host::Ipv4(_) | Host::Ipv6(_) => !bare,
    };
    if !named || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_fragment(None);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| {
            !(name.starts_with("utm_") || matches!(&**name, "gclid" | "fbclid" | "mc_cid" | "mc_eid"))
        })
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    // Written anew only where something goes: how a server wants its question spelled is its affair.
    if kept.len() != url.query_pairs().count() {
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
    Some(url)
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let mut byte = [*first];
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let decoded = digits.is_some_and(|digits| hex::decode_to_slice(digits, &mut byte).is_ok());
        bytes.push(if decoded { byte[0] } else { *first });
        rest = if decoded { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn not_one() -> Error {
    Error::invalid("value", "is no web address, DOI, arXiv number (arXiv:…) or PubMed number (PMID:…)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (&'static str, String, String) {
        let found = Locator::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        (found.resource_type.as_str(), found.normalized, found.url)
    }

    #[test]
    fn one_thing_has_one_name_however_it_is_written() {
        for (texts, kind, normalized, url) in [
            (
                &[
                    "10.1000/ABC.5",
                    "doi:10.1000/abc.5",
                    "DOI: 10.1000/abc.5",
                    "https://doi.org/10.1000/ABC.5",
                    "http://dx.doi.org/10.1000%2Fabc.5",
                    " 10.1000/abc.5. ",
                ][..],
                "doi",
                "10.1000/abc.5",
                "https://doi.org/10.1000/abc.5",
            ),
            (
                &[
                    "arXiv:2101.00001v2",
                    "2101.00001v2",
                    "https://arxiv.org/abs/2101.00001v2",
                    "http://www.arxiv.org/pdf/2101.00001v2.pdf",
                ],
                "arxiv",
                "arxiv:2101.00001v2",
                "https://arxiv.org/abs/2101.00001v2",
            ),
            (
                &["hep-th/9901001", "arxiv:HEP-TH/9901001"],
                "arxiv",
                "arxiv:hep-th/9901001",
                "https://arxiv.org/abs/hep-th/9901001",
            ),
            (&["math.AG/0512123"], "arxiv", "arxiv:math.ag/0512123", "https://arxiv.org/abs/math.ag/0512123"),
            (
                &[
                    "PMID: 123456",
                    "pmid:123456",
                    "https://pubmed.ncbi.nlm.nih.gov/123456/",
                    "https://www.ncbi.nlm.nih.gov/pubmed/123456",
                ],
                "pmid",
                "pmid:123456",
                "https://pubmed.ncbi.nlm.nih.gov/123456/",
            ),
            (
                &[
                    "https://Example.org/a?b=1#part",
                    "example.org/a?b=1",
                    "https://example.org:443/a?b=1&utm_source=x&gclid=y",
                ],
                "url",
                "https://example.org/a?b=1",
                "https://example.org/a?b=1",
            ),
            (
                &["http://example.org/a.PDF"],
                "pdf_url",
                "http://example.org/a.PDF",
                "http://example.org/a.PDF",
            ),
            (&["example.org:8080/a"], "url", "https://example.org:8080/a", "https://example.org:8080/a"),
        ] {
            for text in texts {
                assert_eq!(of(text), (kind, normalized.to_owned(), url.to_owned()), "{text}");
            }
        }
    }

    #[test]
    fn a_paper_has_the_doi_of_all_its_versions() {
        for text in ["2101.00001", "2101.00001v3"] {
            assert_eq!(Locator::parse(text).unwrap().doi.unwrap(), "10.48550/arxiv.2101.00001");
        }
        assert_eq!(Locator::parse("pmid:1").unwrap().doi, None);
    }

    #[test]
    fn what_a_server_is_asked_stays_as_it_was_spelled() {
        for text in ["https://example.org/a?x=%7E&y=a+b&z", "https://example.org/?q=a%20b"] {
            assert_eq!(of(text).2, text);
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        let long = format!("https://example.org/{}", "a".repeat(5_000));
        let longer = format!("https://example.org/{}", "\u{e4}".repeat(1_500));
        for text in [
            "",
            " ",
            "bees",
            "12345",
            "ftp://example.org/a",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "mailto:a@example.org",
            "https://",
            "https://intranet/",
            "pmid:0",
            "pmid:123456789",
            "10.1/x",
            "10.1000/",
            &longer,
            "a\nb.org",
            "https://user:secret@example.org/",
            &long,
        ] {
            assert!(Locator::parse(text).is_err(), "{text}");
        }
    }
}
