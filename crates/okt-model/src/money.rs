//! Money in integers: sums of many small amounts are exact, and a limit is compared with what was really added up.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::permission::words;

/// An amount in millionths of a US dollar. In JSON and in settings it is a number of dollars; nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

impl Money {
    pub const ZERO: Self = Self(0);
    /// The most that anybody may set as a limit.
    pub const MOST: Self = Self(1_000_000_000 * MICROS);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The millionths nearest to a number of dollars; `None` when it is negative, more than [`Self::MOST`], or no number.
    #[expect(clippy::cast_possible_truncation, reason = "it is within the limits, and rounded")]
    pub fn from_usd(usd: f64) -> Option<Self> {
        let known = (0.0..=Self::MOST.to_usd()).contains(&usd);
        known.then(|| Self((usd * PER_DOLLAR).round() as i64))
    }

    /// For whoever reads it as a number of dollars.
    #[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
    pub const fn to_usd(self) -> f64 {
        self.0 as f64 / PER_DOLLAR
    }

    /// What tokens cost, each lot with its price in dollars for a million of them: added up exactly, then rounded up to a
    /// whole millionth, so that what is charged is never less than what is due.
    pub fn price(lots: &[(u64, f64)]) -> Self {
        let picos: u128 =
            lots.iter().map(|(tokens, price)| u128::from(*tokens) * picos_per_token(*price)).sum();
        Self(i64::try_from(picos.div_ceil(1_000_000)).unwrap_or(i64::MAX))
    }
}

words! {
    /// Whose budget stands in the way of a call.
    BudgetOf {
        Repository = "repository",
        Installation = "installation",
    }
}

/// What the operator lets be spent on models in a month; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingLimits {
    /// By all repositories together.
    pub installation: Option<Money>,
    /// By a repository that has chosen no budget of its own.
    pub default: Option<Money>,
    /// By any repository.
    pub most: Option<Money>,
}

impl SpendingLimits {
    /// What a repository may spend that has chosen this.
    pub fn of_repository(&self, chosen: Option<Money>) -> Option<Money> {
        match (chosen.or(self.default), self.most) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, most) => wanted.or(most),
        }
    }
}

const MICROS: i64 = 1_000_000;
const PER_DOLLAR: f64 = 1e6;

/// A dollar for a million tokens is a millionth of a dollar for one; prices count to a millionth of that.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and it saturates"
)]
fn picos_per_token(usd_per_million: f64) -> u128 {
    (usd_per_million.max(0.0) * 1e6).round() as u128
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Money {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// In dollars, as people write them.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_usd())
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_usd())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let usd = f64::deserialize(deserializer)?;
        Self::from_usd(usd).ok_or_else(|| serde::de::Error::custom("not an amount of money"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exact_and_rounded_up() {
        for (lots, micros) in [
            (vec![(100, 0.07)], 7),
            (vec![(1, 0.07)], 1),
            (vec![(3, 0.1)], 1),
            (vec![(10, 0.1)], 1),
            (vec![(11, 0.1)], 2),
            (vec![(1_000_000, 0.15), (1_000_000, 0.6)], 750_000),
            // Each would be rounded up alone; together they are a whole one.
            (vec![(1, 0.25), (1, 0.75)], 1),
            (vec![(0, 50.0)], 0),
            (vec![(5, 0.0)], 0),
            (vec![(u64::MAX, 1e12)], i64::MAX),
        ] {
            assert_eq!(Money::price(&lots).micros(), micros, "{lots:?}");
        }
    }

    #[test]
    fn a_million_small_amounts_add_up() {
        let sum: Money = std::iter::repeat_n(Money::from_usd(0.1).unwrap(), 1_000_000).sum();
        assert_eq!(sum, Money::from_usd(100_000.0).unwrap());
        assert!((0..1_000_000).fold(0.0, |sum, _| sum + 0.1) > 100_000.000_001, "as dollars they do not");
    }

    #[test]
    fn what_a_repository_may_spend_is_what_it_chose_and_no_more_than_the_operator_lets_it() {
        let usd = |usd: f64| Money::from_usd(usd);
        for (default, most, chosen, expected) in [
            (None, None, None, None),
            (None, None, usd(5.0), usd(5.0)),
            (usd(2.0), None, None, usd(2.0)),
            (usd(2.0), None, usd(5.0), usd(5.0)),
            (usd(2.0), usd(3.0), usd(5.0), usd(3.0)),
            (None, usd(3.0), None, usd(3.0)),
            (usd(2.0), usd(3.0), usd(0.0), usd(0.0)),
        ] {
            let limits = SpendingLimits { installation: None, default, most };
            assert_eq!(limits.of_repository(chosen), expected, "{limits:?} {chosen:?}");
        }
    }

    #[test]
    fn dollars_come_back_as_they_were_given() {
        for usd in [0.0, 0.000_001, 0.1, 0.3, 1.0, 19.99, 123_456.789_012, 1e9] {
            let money = Money::from_usd(usd).unwrap();
            assert_eq!(money.to_string(), usd.to_string());
            let json = serde_json::to_string(&money).unwrap();
            assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money, "{json}");
        }
        for usd in [-0.01, f64::NAN, f64::INFINITY, 1e9 + 1.0] {
            assert_eq!(Money::from_usd(usd), None, "{usd}");
        }
    }
}
