//! Names of elements and attributes, and what they mean here.

/// Attributes that somebody asks for; the others are not kept.
pub const KEPT: [&str; 32] = [
    "alt",
    "aria-hidden",
    "aria-modal",
    "charset",
    "class",
    "content",
    "data-component",
    "data-lazy-src",
    "data-original",
    "data-src",
    "data-srcset",
    "data-testid",
    "datetime",
    "height",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "itemprop",
    "lang",
    "name",
    "property",
    "pubdate",
    "rel",
    "role",
    "src",
    "srcset",
    "start",
    "style",
    "type",
    "width",
    "xml:lang",
];

pub fn is_scope(name: &str) -> bool {
    matches!(name, "td" | "th" | "caption" | "table" | "button" | "object")
}

pub fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "frame"
    )
}

/// Elements that do not begin a new line.
pub fn is_inline(name: &str) -> bool {
    matches!(
        name,
        "" | "a"
            | "abbr"
            | "acronym"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "br"
            | "button"
            | "cite"
            | "code"
            | "data"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "img"
            | "input"
            | "ins"
            | "kbd"
            | "label"
            | "mark"
            | "math"
            | "nobr"
            | "picture"
            | "q"
            | "rp"
            | "rt"
            | "ruby"
            | "s"
            | "samp"
            | "small"
            | "source"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "svg"
            | "time"
            | "tt"
            | "u"
            | "var"
            | "wbr"
            | "mi"
            | "mn"
            | "mo"
            | "mrow"
            | "msup"
            | "msub"
            | "semantics"
            | "path"
            | "g"
            | "use"
            | "meta"
            | "link"
            | "object"
            | "video"
            | "audio"
            | "track"
    )
}
