//! A length of time as people write it: `15s`, `1m30s`, `720h`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration written as whole numbers with units: `ms`, `s`, `m`, `h`, `d`. At most 36500 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

impl Period {
    /// Longer than any sensible setting, and short enough that adding it to a time of day can't overflow.
    const LONGEST: Duration = Duration::from_hours(36_500 * 24);

    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn duration(self) -> Duration {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl From<Duration> for Period {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

/// The text is not a period.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAPeriod;

impl fmt::Display for NotAPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a period such as 15s, 1m30s or 24h")
    }
}

impl FromStr for Period {
    type Err = NotAPeriod;

    fn from_str(text: &str) -> Result<Self, NotAPeriod> {
        let mut rest = text;
        let mut total = Duration::ZERO;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(NotAPeriod)?;
            let count: u64 = rest[..digits].parse().map_err(|_| NotAPeriod)?;
            rest = &rest[digits..];
            let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let milliseconds: u64 = match &rest[..unit_end] {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(NotAPeriod),
            };
            rest = &rest[unit_end..];
            let part = Duration::from_millis(count.checked_mul(milliseconds).ok_or(NotAPeriod)?);
            total = total.checked_add(part).ok_or(NotAPeriod)?;
        }
        if text.is_empty() || total > Self::LONGEST {
            return Err(NotAPeriod);
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [
            (seconds / 3600, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (u64::from(self.0.subsec_millis()), "ms"),
        ];
        if parts.iter().all(|(count, _)| *count == 0) {
            return f.write_str("0s");
        }
        parts.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "period", "pattern": "^([0-9]+(ms|s|m|h|d))+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_and_written_the_way_people_write_them() {
        for (text, seconds, shown) in [
            ("15s", 15, "15s"),
            ("24h", 86_400, "24h"),
            ("720h", 2_592_000, "720h"),
            ("1m30s", 90, "1m30s"),
            ("90s", 90, "1m30s"),
            ("30d", 2_592_000, "720h"),
            ("0s", 0, "0s"),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!((period, period.to_string().as_str()), (Period::from_secs(seconds), shown), "{text}");
        }
        assert_eq!("1500ms".parse::<Period>().unwrap().to_string(), "1s500ms");
    }

    #[test]
    fn what_is_not_a_period_is_refused() {
        for text in
            ["", "15", "s", "15 s", "-1s", "1.5h", "15x", "15s ", "1w", "99999999999999999999s", "9999999h"]
        {
            assert_eq!(text.parse::<Period>(), Err(NotAPeriod), "{text:?}");
        }
    }
}
