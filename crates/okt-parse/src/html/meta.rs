//! What a page says of itself.

use serde_json::Value;
use url::Url;

use super::tree::{BODY, Tree};
use crate::{Read, clean, language};

/// Longer values are not what they claim to be.
const LONGEST: usize = 500;

/// Fills in everything but text and images.
pub fn read(tree: &Tree, base: Option<&Url>) -> Read {
    let data = Data::of(tree);
    let meta = |names: &[&str]| meta(tree, names);
    let site_name = meta(&["og:site_name", "citation_journal_title", "application-name", "dc.publisher"])
        .or_else(|| data.text(&["publisher", "name"]))
        .and_then(|name| clean::line(&name, 200));
    Read {
        title: title(tree, &data, site_name.as_deref()),
        author: author(tree, &data),
        published_at: published(tree, &data),
        language: tree
            .language
            .clone()
            .or_else(|| meta(&["content-language", "language", "dc.language", "citation_language"]))
            .or_else(|| data.text(&["inLanguage"]))
            .or_else(|| meta(&["og:locale"]))
            .and_then(|claim| language::code(&claim)),
        license: license(tree, &data, base),
        doi: doi(tree, &data),
        site_name,
        ..Read::default()
    }
}

/// Whether the posts of readers are what the page is about.
pub fn is_forum(tree: &Tree) -> bool {
    tree.data.iter().any(|data| data.contains("DiscussionForumPosting") || data.contains("QAPage"))
}

/// The first of these that is there, by the order of the names.
fn meta(tree: &Tree, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| metas(tree, name).next())
}

fn metas<'a>(tree: &'a Tree, name: &'a str) -> impl Iterator<Item = String> + 'a {
    tree.heads.iter().filter(|head| &*head.name == "meta").filter_map(move |head| {
        let named = ["name", "property", "itemprop", "http-equiv"]
            .into_iter()
            .filter_map(|attribute| head.attribute(attribute))
            .any(|value| value.trim().eq_ignore_ascii_case(name));
        let content = head.attribute("content").filter(|_| named)?;
        clean::line(content, LONGEST * 4)
    })
}

fn title(tree: &Tree, data: &Data, site: Option<&str>) -> Option<String> {
    let own = tree.title.as_deref().and_then(|title| clean::line(title, LONGEST));
    let headings: Vec<String> = (0..tree.nodes.len())
        .filter(|id| &*tree.nodes[*id].name == "h1")
        .take(3)
        .filter_map(|id| clean::line(&tree.text_of(id), LONGEST))
        .collect();
    let heading = headings.first().filter(|_| headings.len() == 1);
    let said = meta(tree, &["citation_title", "og:title", "dc.title", "twitter:title"])
        .or_else(|| data.text(&["headline"]))
        .and_then(|title| clean::line(&title, LONGEST));
    let title = said.or(own)?;
    // The heading of the page is its title without the name of the site.
    if let Some(heading) =
        heading.or_else(|| headings.iter().find(|heading| title.starts_with(heading.as_str())))
        && heading.chars().count() >= 4
        && title.to_lowercase().contains(&heading.to_lowercase())
    {
        return Some(heading.clone());
    }
    Some(without_site(&title, site))
}

/// `A title | A site` is `A title`.
fn without_site(title: &str, site: Option<&str>) -> String {
    for mark in [" | ", " - ", " – ", " — ", " · ", " « ", " » ", " :: "] {
        let Some((head, tail)) = title.rsplit_once(mark) else { continue };
        let named = site.is_some_and(|site| tail.trim().eq_ignore_ascii_case(site));
        let short = mark == " | "
            && tail.split_whitespace().count() <= 4
            && head.chars().count() > tail.chars().count();
        if (named || short) && !head.trim().is_empty() {
            return head.trim().to_owned();
        }
    }
    title.to_owned()
}

fn author(tree: &Tree, data: &Data) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for key in ["citation_author", "dc.creator", "author", "article:author", "parsely-author", "byl"] {
        names.extend(metas(tree, key).filter(|name| !name.starts_with("http")));
        if !names.is_empty() {
            break;
        }
    }
    if names.is_empty() {
        names = data.names("author");
    }
    if names.is_empty() {
        names.extend(byline(tree));
    }
    names.dedup();
    names.truncate(50);
    // `Moss, Ada` is one name.
    let between = if names.iter().any(|name| name.contains(',')) { "; " } else { ", " };
    clean::line(&names.iter().map(|name| without_by(name)).collect::<Vec<_>>().join(between), LONGEST)
}

/// A name that is marked as that of the author in the page.
fn byline(tree: &Tree) -> Option<String> {
    (1..tree.nodes.len()).find_map(|id| {
        let node = &tree.nodes[id];
        let marked = node.attribute("rel") == Some("author")
            || node.attribute("itemprop") == Some("author")
            || node.attribute("class").is_some_and(|class| {
                class
                    .split_whitespace()
                    .any(|class| matches!(class, "byline" | "author" | "author-name" | "byline-name"))
            });
        let text = marked.then(|| tree.text_of(id))?;
        let name = clean::line(&text, 101).filter(|name| name.chars().count() <= 100)?;
        let name = without_by(name.split([',', '|', '·', '•']).next()?.trim()).to_owned();
        (!name.is_empty() && name.split_whitespace().count() <= 6).then_some(name)
    })
}

fn without_by(name: &str) -> &str {
    ["By ", "by ", "BY ", "Von ", "Par ", "Por "]
        .iter()
        .find_map(|word| name.strip_prefix(word))
        .unwrap_or(name)
        .trim()
}

fn published(tree: &Tree, data: &Data) -> Option<String> {
    const NAMES: [&str; 16] = [
        "citation_publication_date",
        "citation_online_date",
        "citation_date",
        "article:published_time",
        "datepublished",
        "dc.date.issued",
        "dcterms.issued",
        "dc.date",
        "dc.issued",
        "og:published_time",
        "parsely-pub-date",
        "sailthru.date",
        "publish-date",
        "pubdate",
        "publication_date",
        "date",
    ];
    NAMES
        .iter()
        .find_map(|name| metas(tree, name).find_map(|text| clean::date(&text)))
        .or_else(|| ["datePublished", "dateCreated"].iter().find_map(|key| clean::date(&data.text(&[key])?)))
        .or_else(|| {
            (1..tree.nodes.len()).find_map(|id| {
                let node = &tree.nodes[id];
                let published = node.attribute("itemprop") == Some("datePublished")
                    || node.attribute("pubdate").is_some();
                let plain = &*node.name == "time";
                let text = (published || plain)
                    .then(|| node.attribute("datetime").or_else(|| node.attribute("content")))??;
                clean::date(text)
            })
        })
}

fn license(tree: &Tree, data: &Data, base: Option<&Url>) -> Option<String> {
    let is_license = |rel: Option<&str>| {
        rel.is_some_and(|rel| rel.split_whitespace().any(|word| word.eq_ignore_ascii_case("license")))
    };
    let linked = tree
        .heads
        .iter()
        .filter(|head| is_license(head.attribute("rel")))
        .find_map(|head| head.attribute("href"));
    let anchor = || {
        let node = (BODY..tree.nodes.len()).find(|id| is_license(tree.nodes[*id].attribute("rel")))?;
        tree.nodes[node].attribute("href")
    };
    linked
        .or_else(anchor)
        .and_then(|href| super::render::address(href, base))
        .or_else(|| {
            meta(
                tree,
                &[
                    "dc.rights.license",
                    "license",
                    "licence",
                    "dcterms.license",
                    "dc.rights",
                    "citation_license",
                ],
            )
        })
        .or_else(|| data.text(&["license"]))
        .and_then(|license| clean::line(&license, 300))
}

fn doi(tree: &Tree, data: &Data) -> Option<String> {
    ["citation_doi", "prism.doi", "bepress_citation_doi", "dc.identifier", "dc.identifier.doi", "doi"]
        .iter()
        .find_map(|name| metas(tree, name).find_map(|text| clean::doi(&text)))
        .or_else(|| ["identifier", "sameAs", "@id"].iter().find_map(|key| clean::doi(&data.text(&[key])?)))
        .or_else(|| {
            let canonical = tree.heads.iter().find(|head| head.attribute("rel") == Some("canonical"))?;
            canonical.attribute("href").filter(|href| href.contains("doi.org/")).and_then(clean::doi)
        })
}

/// The JSON-LD of a page, as a flat list of its objects.
struct Data(Vec<Value>);

impl Data {
    fn of(tree: &Tree) -> Self {
        let mut objects = Vec::new();
        for text in tree.data.iter().take(20).filter(|text| text.len() < 1_000_000) {
            match serde_json::from_str(text.trim()) {
                Ok(Value::Array(list)) => objects.extend(list),
                Ok(Value::Object(mut object)) => match object.remove("@graph") {
                    Some(Value::Array(list)) => objects.extend(list),
                    _ => objects.push(Value::Object(object)),
                },
                _ => {}
            }
        }
        // Objects about the article come first, those about the site and its navigation don't count.
        let rank = |value: &Value| {
            let kind = value["@type"].as_str().or_else(|| value["@type"][0].as_str()).unwrap_or_default();
            match kind {
                _ if kind.contains("Article") || kind.contains("Posting") || kind.contains("Report") => 0,
                "WebPage" | "Recipe" | "Book" | "CreativeWork" | "Product" | "QAPage" => 1,
                _ => 2,
            }
        };
        objects.retain(|value| rank(value) < 2);
        objects.sort_by_key(rank);
        Self(objects)
    }

    /// The text at a path in the first object that has one there.
    fn text(&self, path: &[&str]) -> Option<String> {
        self.0.iter().find_map(|object| {
            let value = path.iter().fold(object, |value, key| {
                let value = if value.is_array() { &value[0] } else { value };
                &value[*key]
            });
            let value = if value.is_array() { &value[0] } else { value };
            value
                .as_str()
                .or_else(|| value["@value"].as_str())
                .or_else(|| value["value"].as_str())
                .map(str::to_owned)
        })
    }

    /// The names of people, given as texts or as objects.
    fn names(&self, key: &str) -> Vec<String> {
        let name = |value: &Value| {
            value.as_str().or_else(|| value["name"].as_str()).and_then(|name| clean::line(name, 200))
        };
        self.0
            .iter()
            .map(|object| match &object[key] {
                Value::Array(list) => list.iter().filter_map(name).collect(),
                value => name(value).into_iter().collect::<Vec<_>>(),
            })
            .find(|names| !names.is_empty())
            .unwrap_or_default()
    }
}
