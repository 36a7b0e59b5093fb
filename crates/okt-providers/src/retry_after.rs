//! When a service wants to be asked again.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// The time that `Retry-After` asks for. A date is held against the answer's own `Date`: what counts is how far the one
/// is from the other on the clock of the service, whatever ours shows. A date without a `Date` says nothing.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let then = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(then.duration_since(now).unwrap_or_default().min(LONGEST))
}

/// Nobody is believed who wants to be left alone for longer.
const LONGEST: Duration = Duration::from_hours(24 * 7);

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[(&'static str, &'static str)]) -> Option<u64> {
        let headers =
            lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        retry_after(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_understood_and_the_rest_is_not() {
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(after(&[("retry-after", "120")]), Some(120));
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT"), now]), Some(120));
        assert_eq!(after(&[("retry-after", "Sunday, 06-Nov-94 08:50:37 GMT"), now]), Some(60));
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), now]), Some(0));
        assert_eq!(after(&[("retry-after", "99999999999")]), Some(604_800));
        for silent in ["", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:51:37 GMT"] {
            assert_eq!(after(&[("retry-after", silent)]), None, "{silent}");
        }
        assert_eq!(after(&[now]), None);
    }
}
