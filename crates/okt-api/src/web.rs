//! The web UI: the files of `web/dist`, inside of the binary.
//!
//! They are made by `cargo xtask web`. A build without them has a page that says so, and a debug build reads them from the
//! folder when it starts.

use std::borrow::Cow;

use bytes::Bytes;
use okt_http::{EntryPage, StaticFile, StaticFiles};
use rust_embed::Embed;
use url::Url;

/// The first page of the UI.
const INDEX: &str = "index.html";
/// The page of the documentation, which is served at an address of its own.
const DOCUMENTATION: &str = "docs.html";
/// Where the names of files carry a hash or a version.
const ASSETS: &str = "assets/";
/// What the page says where the paths of the UI begin.
const BASE: &str = "<base href=\"/\">";
/// Endings of compressed files, and what HTTP calls them. The shortest first.
const ENCODINGS: [(&str, &str); 2] = [(".br", "br"), (".gz", "gzip")];

const WITHOUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>okt</title>\
    <meta name=\"viewport\" content=\"width=device-width\"><h1>okt</h1>\
    <p>This okt was built without the web UI. Build it with <code>cargo xtask web</code>, then build okt again.\
    <p>The HTTP API is described at <a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a>.</html>";

#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// All files of the UI. `issuer` is the address under which browsers know this installation.
pub(crate) fn files(issuer: Option<&Url>) -> StaticFiles {
    let files = Dist::iter().filter(|name| ![INDEX, DOCUMENTATION].contains(&name.as_ref()));
    let files = files.filter(|name| !is_encoded(name) && !name.starts_with('.'));
    let files = files.filter_map(|name| Some((name.to_string(), read(&name)?)));
    StaticFiles::new(EntryPage::new(&page(INDEX, issuer)), files)
}

/// The page of the API's documentation.
pub(crate) fn documentation(issuer: Option<&Url>) -> Bytes {
    page(DOCUMENTATION, issuer).into()
}

/// A page that finds its files from every path.
fn page(name: &str, issuer: Option<&Url>) -> String {
    let page = Dist::get(name).map(|file| String::from_utf8_lossy(&file.data).into_owned());
    let page = page.unwrap_or_else(|| WITHOUT.to_owned());
    page.replacen(BASE, &format!("<base href=\"{}/\">", prefix(issuer)), 1)
}

/// What stands before every path of this installation, for browsers: empty, or such as `/okt`.
pub(crate) fn prefix(issuer: Option<&Url>) -> &str {
    issuer.map_or("", |issuer| issuer.path().trim_end_matches('/'))
}

fn read(name: &str) -> Option<StaticFile> {
    let file = StaticFile::new(name, bytes(name)?, name.starts_with(ASSETS));
    Some(ENCODINGS.into_iter().fold(file, |file, (ending, encoding)| {
        match bytes(&format!("{name}{ending}")) {
            Some(bytes) => file.encoded(encoding, bytes),
            None => file,
        }
    }))
}

/// Not copied where they are part of the binary.
fn bytes(name: &str) -> Option<Bytes> {
    Dist::get(name).map(|file| match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    })
}

fn is_encoded(name: &str) -> bool {
    ENCODINGS.into_iter().any(|(ending, _)| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_where_the_issuer_says() {
        let prefix_of = |issuer: &str| prefix(Some(&Url::parse(issuer).unwrap())).to_owned();
        assert_eq!(prefix(None), "");
        assert_eq!(prefix_of("https://okt.example"), "");
        assert_eq!(prefix_of("https://example.org/okt"), "/okt");
        assert_eq!(prefix_of("https://example.org/a/okt/"), "/a/okt");
    }
}
