//! Numbers as they are written: 2.4 is 2.4, and not the binary fraction next to it.

use std::fmt;

/// Digits, and the power of ten that they are multiplied by. Without noughts at the end, so that equal means equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    power: i32,
}

impl Decimal {
    /// Digits with at most one point, and at most thirty of them.
    pub fn read(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{part}");
        let fits = !whole.is_empty() && digits.len() <= 30 && digits.bytes().all(|c| c.is_ascii_digit());
        let power = i32::try_from(part.len()).ok()?;
        fits.then(|| Some(Self { digits: digits.parse().ok()?, power: -power }.shortened()))?
    }

    pub fn whole(value: u64) -> Self {
        Self { digits: value.into(), power: 0 }.shortened()
    }

    pub fn times(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Self { digits, power: self.power + other.power }.shortened())
    }

    pub fn times_ten_to(self, power: u32) -> Option<Self> {
        let power = i32::try_from(power).ok()?;
        Some(Self { power: self.power.checked_add(power)?, ..self }.shortened())
    }

    fn shortened(mut self) -> Self {
        if self.digits == 0 {
            return Self { digits: 0, power: 0 };
        }
        while self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.power += 1;
        }
        self
    }
}

/// As one would write it, so that `1.2 million` is `1200000`.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = usize::try_from(self.power.unsigned_abs()).unwrap_or(0);
        if self.power >= 0 {
            return write!(f, "{}{}", self.digits, "0".repeat(power.min(60)));
        }
        let digits = format!("{:0>width$}", self.digits, width = power + 1);
        let (whole, part) = digits.split_at(digits.len() - power);
        write!(f, "{whole}.{part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_is_written() {
        let shown = |text: &str| Decimal::read(text).map(|decimal| decimal.to_string());
        assert_eq!(shown("2.40").as_deref(), Some("2.4"));
        assert_eq!(shown("1200").as_deref(), Some("1200"));
        assert_eq!(shown("0.05").as_deref(), Some("0.05"));
        assert_eq!(shown("000").as_deref(), Some("0"));
        assert_eq!(shown("1.2.3"), None);
        assert_eq!(shown(""), None);
        assert_eq!(shown(&"9".repeat(31)), None);
        let million = Decimal::read("1.2").unwrap().times_ten_to(6).unwrap();
        assert_eq!(million, Decimal::read("1200000").unwrap());
        assert_eq!(Decimal::read("2.4").unwrap().times(Decimal::whole(1000)), Decimal::read("2400"));
    }
}
