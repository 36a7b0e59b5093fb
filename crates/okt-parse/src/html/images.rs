//! The pictures in the content of a page.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use url::Url;

use super::content::Content;
use super::render::address;
use super::tree::{Id, Node, Tree};
use crate::{Image, ImageKind, Limits, clean};

/// Smaller ones count visits or decorate lists.
const SMALLEST: u32 = 32;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// In the order of the page, each address once. Pictures of the site are not in the content, so they don't come.
pub fn find(tree: &Tree, content: &Content, base: Option<&Url>, limits: &Limits) -> Vec<Image> {
    let most = usize::try_from(limits.images).unwrap_or(usize::MAX);
    let mut images: Vec<Image> = Vec::new();
    for id in tree.below(content.root).filter(|id| !content.dropped[*id]) {
        if images.len() >= most {
            break;
        }
        let node = &tree.nodes[id];
        if &*node.name != "img" {
            continue;
        }
        let size = |name| {
            node.attribute(name).and_then(|size| size.trim().trim_end_matches("px").parse::<u32>().ok())
        };
        let (width, height) = (size("width"), size("height"));
        if width.is_some_and(|width| width < SMALLEST) || height.is_some_and(|height| height < SMALLEST) {
            continue;
        }
        let Some((url, content_type, bytes)) = source(node, base, limits) else { continue };
        if url.is_some() && images.iter().any(|image| image.url == url) {
            continue;
        }
        images.push(Image {
            kind: ImageKind::Inline,
            page_number: None,
            position: u32::try_from(images.len()).unwrap_or(u32::MAX),
            url,
            width,
            height,
            alt_text: node
                .attribute("alt")
                .and_then(|alt| clean::line(alt, 1_000))
                .or_else(|| caption(tree, id)),
            content_type,
            bytes,
        });
    }
    images
}

/// What stands below a picture says what it shows where nothing else does.
fn caption(tree: &Tree, id: Id) -> Option<String> {
    let figure = tree.above(id).take(6).find(|above| &*tree.nodes[*above].name == "figure")?;
    let caption = tree.below(figure).find(|below| &*tree.nodes[*below].name == "figcaption")?;
    clean::line(&tree.text_of(caption), 1_000)
}

type Source = (Option<String>, Option<String>, Vec<u8>);

/// Its address or its bytes. Pages that load pictures late have a stand-in in `src` and the picture beside it.
fn source(node: &Node, base: Option<&Url>, limits: &Limits) -> Option<Source> {
    let set = node.attribute("srcset").or_else(|| node.attribute("data-srcset"));
    let first = set.and_then(|set| set.split_whitespace().next()).map(|first| first.trim_end_matches(','));
    let late =
        ["data-src", "data-original", "data-lazy-src"].into_iter().find_map(|name| node.attribute(name));
    [late, node.attribute("src"), first].into_iter().flatten().find_map(|source| {
        let source = source.trim();
        if source.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
            let (kind, bytes) = inline(&source[5..], limits)?;
            return Some((None, Some(kind.to_owned()), bytes));
        }
        let url = address(source, base)?;
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let drawing =
            path.rsplit('.').next().is_some_and(|end| ["svg", "svgz"].contains(&&*end.to_ascii_lowercase()));
        (!drawing).then_some((Some(url), None, Vec::new()))
    })
}

/// The bytes of a `data:` address, if they are a picture of a kind that is carried. What they are is told by themselves.
fn inline(data: &str, limits: &Limits) -> Option<(&'static str, Vec<u8>)> {
    let (head, body) = data.split_once(',')?;
    let most = usize::try_from(limits.image_bytes).unwrap_or(usize::MAX);
    if !head.to_ascii_lowercase().ends_with(";base64") || body.len() / 4 > most / 3 + 1 {
        return None;
    }
    let body: Vec<u8> = body.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let bytes = LENIENT.decode(body).ok()?;
    let kind = infer::get(&bytes)?.mime_type();
    let carried = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    // A picture of a hundred bytes is a dot.
    (carried && bytes.len() <= most && bytes.len() > 100).then_some((kind, bytes))
}
