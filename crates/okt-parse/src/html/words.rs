//! What the names of classes and ids say.

/// Whether one of the words of a class or an id is such a one: `postComments is-open` is `post`, `comments`, `is`, `open`.
/// A word that says what the element has or lacks does not name it.
pub fn has_word(mark: &str, such: impl Fn(&str) -> bool) -> bool {
    let mut word = String::new();
    let mut negated = false;
    let mut lower_before = false;
    let mut found = false;
    let mut close = |word: &mut String, whole: bool| {
        if !word.is_empty() {
            found |= !negated && such(word);
            negated = matches!(word.as_str(), "has" | "with" | "no" | "without" | "hide" | "not") && !whole;
            word.clear();
        }
        if whole {
            negated = false;
        }
        found
    };
    for c in mark.chars().take(500) {
        if !c.is_ascii_alphanumeric() {
            if close(&mut word, c.is_whitespace()) {
                return true;
            }
            lower_before = false;
            continue;
        }
        if c.is_ascii_uppercase() && lower_before && close(&mut word, false) {
            return true;
        }
        lower_before = c.is_ascii_lowercase();
        word.push(c.to_ascii_lowercase());
    }
    close(&mut word, true)
}

/// Words of classes and ids that mark boilerplate: navigation, advertisements, comments and the like. Sorted.
pub const BOILERPLATE: &[&str] = &[
    "ad",
    "adbox",
    "ads",
    "adsbygoogle",
    "adsense",
    "adslot",
    "advert",
    "advertisement",
    "advertising",
    "adverts",
    "adwrapper",
    "author",
    "authorbox",
    "banner",
    "bio",
    "breadcrumb",
    "breadcrumbs",
    "byline",
    "catlinks",
    "ccpa",
    "comment",
    "commentlist",
    "comments",
    "consent",
    "cookie",
    "cookiebar",
    "cookies",
    "cta",
    "dateline",
    "disqus",
    "dropdown",
    "editsection",
    "feedback",
    "follow",
    "footer",
    "gdpr",
    "hatnote",
    "infolinks",
    "jumplinks",
    "login",
    "masthead",
    "menu",
    "metadata",
    "modal",
    "mostread",
    "nav",
    "navbar",
    "navbox",
    "navigation",
    "newsletter",
    "noprint",
    "outbrain",
    "overlay",
    "pager",
    "paginate",
    "pagination",
    "paywall",
    "permalink",
    "popular",
    "popup",
    "postmeta",
    "print",
    "printonly",
    "promo",
    "promotion",
    "rail",
    "recirc",
    "recommend",
    "recommendation",
    "recommendations",
    "recommended",
    "register",
    "related",
    "respond",
    "share",
    "sharebar",
    "sharedaddy",
    "sharing",
    "sidebar",
    "signin",
    "signup",
    "sitenav",
    "skip",
    "skiplink",
    "social",
    "sponsor",
    "sponsored",
    "sponsors",
    "sr",
    "submenu",
    "subscribe",
    "subscription",
    "taboola",
    "tagcloud",
    "taglist",
    "tags",
    "teaser",
    "teasers",
    "ticker",
    "timestamp",
    "toc",
    "toolbar",
    "topbar",
    "trending",
    "upsell",
    "visuallyhidden",
    "vote",
    "votes",
    "widget",
    "widgets",
];

/// Words of classes and ids that name short pieces beside the text: captions, credits, dates. Sorted.
pub const LABELS: &[&str] = &[
    "attribution",
    "caption",
    "captions",
    "captiontext",
    "categories",
    "category",
    "copyright",
    "credit",
    "credits",
    "date",
    "dates",
    "datetime",
    "entrymeta",
    "eyebrow",
    "imagecaption",
    "keywords",
    "kicker",
    "lastupdated",
    "legend",
    "meta",
    "photocredit",
    "photographer",
    "posted",
    "pubdate",
    "published",
    "readtime",
    "topics",
    "updated",
    "views",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_sorted() {
        assert!(BOILERPLATE.is_sorted());
        assert!(LABELS.is_sorted());
    }

    #[test]
    fn a_class_is_read_word_by_word() {
        let bad = |word: &str| BOILERPLATE.binary_search(&word).is_ok();
        for mark in ["sidebar", "post-comments", "relatedArticles", "x  Cookie_Notice", "site_nav"] {
            assert!(has_word(mark, bad), "{mark}");
        }
        for mark in
            ["header-content", "has-sidebar", "no-comments", "addition", "shared-content", "with-nav post"]
        {
            assert!(!has_word(mark, bad), "{mark}");
        }
    }
}
