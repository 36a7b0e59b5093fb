//! What to do with a refresh token that is presented: one decision, without a database.

use std::time::Duration;

use okt_store::sessions::Presented;

/// A reply may be lost on its way. Within this time the same token may come again, if nobody used what it was
/// exchanged for.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not valid, and nobody is harmed by it.
    Refuse,
    /// Put a new token in its place. When there is one already, nobody has it: it is replaced.
    Rotate,
    /// Two hold the same token, and one of them stole it: the family ends.
    Revoke,
}

pub fn next(token: &Presented) -> Next {
    match (token.alive, token.used, token.successor_used) {
        (false, ..) => Next::Refuse,
        _ if token.superseded => Next::Revoke,
        (true, None, _) => Next::Rotate,
        (true, Some(ago), Some(false)) if ago <= GRACE => Next::Rotate,
        (true, Some(_), _) => Next::Revoke,
    }
}

#[cfg(test)]
mod tests {
    use okt_model::{SessionId, UserId};

    use super::*;

    #[test]
    fn a_token_is_rotated_once_replaced_in_a_moment_of_grace_and_otherwise_ends_its_family() {
        let token = |alive, used: Option<u64>, successor_used| Presented {
            session: SessionId::mint(),
            user: UserId::mint(),
            alive,
            superseded: false,
            used: used.map(Duration::from_secs),
            successor_used,
        };
        for (presented, expected) in [
            (token(true, None, None), Next::Rotate),
            (token(false, None, None), Next::Refuse),
            (token(true, Some(1), Some(false)), Next::Rotate),
            (token(true, Some(10), Some(false)), Next::Rotate),
            (token(true, Some(11), Some(false)), Next::Revoke),
            (token(true, Some(1), Some(true)), Next::Revoke),
            (token(true, Some(1), None), Next::Revoke),
            (token(false, Some(1), Some(false)), Next::Refuse),
        ] {
            assert_eq!(next(&presented), expected, "{presented:?}");
            // Somebody has the token that was taken for lost.
            let superseded = Presented { superseded: true, ..presented };
            let expected = if presented.alive { Next::Revoke } else { Next::Refuse };
            assert_eq!(next(&superseded), expected, "{superseded:?}");
        }
    }
}
