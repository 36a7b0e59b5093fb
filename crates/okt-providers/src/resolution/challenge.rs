//! Pages that want to see a browser or a person before they show what is behind them.

use http::header::{CONTENT_TYPE, SERVER};
use http::{HeaderMap, StatusCode};

use crate::text::{find_ignoring_case, plain};

/// Such pages are small; a longer one is a document.
pub(super) const LONGEST: usize = 64 * 1024;

/// Titles as they stand on such pages, in small letters.
const TITLES: [&str; 14] = [
    "just a moment",
    "attention required",
    "checking your browser",
    "please wait",
    "one more step",
    "ddos-guard",
    "verifying you are human",
    "verify you are human",
    "human verification",
    "are you a robot",
    "security check",
    "bot verification",
    "making sure you're not a bot",
    "pardon our interruption",
];

/// What such pages are made with.
const MARKS: [&str; 12] = [
    "/cdn-cgi/challenge-platform/",
    "_cf_chl_opt",
    "cf-browser-verification",
    "challenges.cloudflare.com",
    "/.well-known/ddos-guard/",
    "_incapsula_resource",
    "captcha-delivery.com",
    "px-captcha",
    "awswafintegration",
    "g-recaptcha",
    "h-captcha",
    "/.within.website/x/cmd/anubis/",
];

const SERVERS: [&str; 3] = ["cloudflare", "ddos-guard", "akamaighost"];

/// The text of a page that is nothing but a challenge.
const FEW_WORDS: usize = 300;

/// Whether it is one, told by the head and the `beginning` of the body. `whole`: that is all there is.
pub(super) fn is_one(status: StatusCode, headers: &HeaderMap, beginning: &[u8], whole: bool) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header("cf-mitigated").eq_ignore_ascii_case("challenge") {
        return true;
    }
    if !whole || !may_be_html(headers) {
        return false;
    }
    let page = String::from_utf8_lossy(beginning);
    let title = title(&page).to_lowercase();
    let titled = TITLES.iter().any(|known| title.contains(known));
    let marked = MARKS.iter().any(|mark| find_ignoring_case(&page, mark).is_some());
    let server = header(SERVER.as_str()).to_ascii_lowercase();
    let of_vendor = SERVERS.iter().any(|known| server.contains(known));
    // Comments below an article have a captcha, too; and somebody may write about a moment. Neither is short and both.
    let short = plain(&page, 2 * FEW_WORDS).chars().count() < FEW_WORDS;
    match status.as_u16() {
        403 | 429 | 503 => titled || (marked && short),
        _ if status.is_success() => short && (marked || (titled && of_vendor)),
        _ => false,
    }
}

/// A head that does not say what it is may be anything.
pub(super) fn may_be_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_none_or(|kind| find_ignoring_case(kind, "html").is_some())
}

fn title(page: &str) -> String {
    let begin = find_ignoring_case(page, "<title");
    let text = begin.and_then(|begin| page[begin..].split_once('>')).map_or("", |(_, text)| text);
    plain(text.split('<').next().unwrap_or_default(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUDFLARE: &str = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>\
        <noscript>Enable JavaScript and cookies to continue</noscript>\
        <script>window._cf_chl_opt={cvId:'3'};a.src='/cdn-cgi/challenge-platform/h/b/x'</script></body></html>";
    const CAPTCHA: &str = "<html><head><title>example.org</title></head><body><p>Please enable JS</p>\
        <script src=\"https://geo.captcha-delivery.com/captcha/\"></script></body></html>";

    fn told(status: u16, headers: &[(&'static str, &'static str)], page: &str) -> bool {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        is_one(status.try_into().unwrap(), &headers, page.as_bytes(), page.len() <= LONGEST)
    }

    #[test]
    fn challenges_are_told_by_head_title_and_marks() {
        for status in [200, 403, 429, 503] {
            assert!(told(status, &[("server", "cloudflare")], CLOUDFLARE), "{status}");
            assert!(told(status, &[("cf-mitigated", "challenge")], ""), "{status}");
            assert!(told(status, &[("content-type", "text/html; charset=UTF-8")], CAPTCHA), "{status}");
        }
        assert!(told(
            403,
            &[],
            "<TITLE>Attention Required! | Cloudflare</TITLE>Sorry, you have been blocked"
        ));
        assert!(told(200, &[("server", "ddos-guard")], "<title>DDoS-Guard</title>"));
    }

    #[test]
    fn documents_are_none() {
        let article = format!(
            "<title>Just a moment: a history of waiting</title>{}<div class=g-recaptcha></div>",
            "Bees wait. ".repeat(100)
        );
        assert!(!told(200, &[("server", "cloudflare")], &article));
        assert!(!told(200, &[("server", "cloudflare")], "<title>Bees</title>Short, but honest."));
        assert!(!told(200, &[], "<title>Please wait</title>A poem about waiting."));
        assert!(!told(403, &[("server", "nginx")], "<title>403 Forbidden</title>"));
        assert!(!told(404, &[("server", "cloudflare")], CLOUDFLARE));
        assert!(!told(200, &[("content-type", "application/pdf")], CLOUDFLARE));
        assert!(!told(200, &[], &format!("{CLOUDFLARE}{}", " ".repeat(LONGEST))));
    }
}
