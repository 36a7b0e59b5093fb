//! Proof that a form was sent from our own page, in the browser that we showed it to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use okt_model::AuthorizationId;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A hidden field of a form. It follows from the secret in the browser's cookie, which no other site can read, so it
/// can't be made for somebody else's browser, nor for another question or step.
pub struct FormToken(String);

/// What the form is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    SignIn,
    Decide,
}

impl FormToken {
    pub fn of(browser: &str, question: AuthorizationId, step: Step) -> Self {
        let step: &[u8] = match step {
            Step::SignIn => b"okt form sign in\0",
            Step::Decide => b"okt form decide\0",
        };
        let digest = Sha256::new().chain_update(step).chain_update(question.uuid()).chain_update(browser);
        Self(URL_SAFE_NO_PAD.encode(digest.finalize()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_one_browser_one_question_and_one_step() {
        let (question, other) = (AuthorizationId::mint(), AuthorizationId::mint());
        let token = FormToken::of("browser", question, Step::Decide);
        assert!(FormToken::of("browser", question, Step::Decide).is(token.as_str()));
        assert!(!FormToken::of("another", question, Step::Decide).is(token.as_str()));
        assert!(!FormToken::of("browser", other, Step::Decide).is(token.as_str()));
        assert!(!FormToken::of("browser", question, Step::SignIn).is(token.as_str()));
        assert!(!token.is(""));
    }
}
