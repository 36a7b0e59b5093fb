//! Holds a sentence against what it cites, before anybody sees it.
//!
//! First by the words, which bind every model. What they leave open a model decides: all that is cited together has to support the
//! sentence, and no fact alone may contradict it, whether it bears a piece or not. What only seems to be cited is struck out after that.

use okt_check::{Judge, Judging, Pair, Said};
use okt_extract::answers::{Checked, Given, Part, check, parts_of};
use okt_model::{CheckMethod, Cost, DropReason, Evidence, POSTURE_MODEL, Posture, Verdict};

use super::{Answering, Stop, given};

/// What became of a sentence.
pub(super) enum Verdicts {
    Shown(Found),
    Failed {
        code: DropReason,
        reason: String,
        /// The keys of what it cites.
        cited: Vec<String>,
    },
}

pub(super) struct Found {
    /// Of those that it names those that were given.
    pub keys: Vec<String>,
    pub verdict: Verdict,
    pub confidence: f32,
    pub method: CheckMethod,
}

/// How sure a rule is that finds a sentence in its facts, as it stands.
const BY_RULE: f32 = 0.9;
/// And where it is not certain.
const OPEN: f32 = 0.5;

impl Answering<'_> {
    /// A key that was not given is struck out, and so is what a sentence cites for show.
    pub(super) async fn check(&self, text: &str, keys: &[String]) -> Result<Verdicts, Stop> {
        let cited: Vec<&Evidence> = keys.iter().filter_map(|key| self.find(key)).collect();
        let language = self.language();
        let facts: Vec<Given<'_>> = cited.iter().map(|one| given(one)).collect();
        let keys_of = |cited: &[&Evidence]| cited.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
        let by_rule = check(text, &facts, language.as_deref());
        if let Checked::Refused(code, reason) = by_rule {
            return Ok(Verdicts::Failed { code, reason, cited: keys_of(&cited) });
        }
        let parts = parts_of(text, &facts);
        let with = |wanted: &[Part]| -> Vec<&Evidence> {
            let some = cited.iter().zip(&parts).filter(|(_, part)| wanted.contains(*part));
            some.map(|(one, _)| *one).collect()
        };
        let bearing = with(&[Part::Bears]);
        let bearing = if bearing.is_empty() { cited.clone() } else { bearing };
        let found = |keys: Vec<String>, verdict, confidence, method| {
            Verdicts::Shown(Found { keys, verdict, confidence, method })
        };
        // Of facts that disagree each is to be seen.
        if by_rule == Checked::Contradicted {
            return Ok(found(keys_of(&cited), Verdict::Contradicted, BY_RULE, CheckMethod::Rule));
        }
        let sure = by_rule == Checked::Supported;
        let rule = || {
            let said = with(&[Part::Bears, Part::Disputes]);
            let keys = keys_of(if said.is_empty() { &cited } else { &said });
            if sure {
                found(keys, Verdict::Supported, BY_RULE, CheckMethod::Rule)
            } else {
                found(keys, Verdict::Unverified, OPEN, CheckMethod::Rule)
            }
        };
        if !matches!(self.judge, Judge::Model { .. }) || self.is_silent() {
            return Ok(rule());
        }
        let facts: Vec<Given<'_>> = bearing.iter().map(|one| given(one)).collect();
        let whole: String = facts.iter().map(Given::says).collect::<Vec<_>>().join(" ");
        let mut pairs = vec![pair(text, &whole, language.as_deref())];
        // Also of what bears no piece: it may say otherwise.
        if cited.len() > 1 {
            pairs.extend(cited.iter().map(|one| pair(text, &one.text, one.language.as_deref())));
        }
        let Some(said) = self.judged(&pairs).await? else { return Ok(rule()) };
        let (whole, alone) =
            said.split_first().map_or((None, &[][..]), |(whole, alone)| (Some(whole), alone));
        let Some(whole) = whole else { return Ok(rule()) };
        let is = |one: &Said, posture| one.posture == Some(posture);
        let method = if whole.by.starts_with(POSTURE_MODEL) { CheckMethod::Rule } else { CheckMethod::Model };
        let against: Vec<&Evidence> = cited
            .iter()
            .zip(alone)
            .filter(|(_, one)| is(one, Posture::Contradicts))
            .map(|(one, _)| *one)
            .collect();
        let contradicted = !against.is_empty();
        let borne = is(whole, Posture::Supports);
        let shown: Vec<&Evidence> = cited
            .iter()
            .copied()
            .filter(|one| bearing.iter().chain(&against).any(|other| other.key == one.key))
            .collect();
        let keys = keys_of(&shown);
        let failed =
            |code, reason: &str| Verdicts::Failed { code, reason: reason.to_owned(), cited: keys.clone() };
        Ok(if borne && !contradicted {
            found(keys, Verdict::Supported, whole.confidence, method)
        } else if contradicted && (borne || alone.iter().any(|one| is(one, Posture::Supports))) {
            // The facts disagree, and the sentence takes a side.
            found(keys, Verdict::Contradicted, whole.confidence, method)
        } else if contradicted || is(whole, Posture::Contradicts) {
            failed(DropReason::Contradicted, "what it cites says otherwise")
        } else if method == CheckMethod::Rule {
            rule()
        } else {
            failed(DropReason::Unsupported, "what it cites does not say so")
        })
    }

    /// What the checker says of pairs; `None` if it does not answer, and is not asked again.
    async fn judged(&self, pairs: &[Pair<'_>]) -> Result<Option<Vec<Said>>, Stop> {
        let on_cost = |cost: Cost| self.ctx.spent(cost);
        let judging = Judging {
            ai: self.tools.ai(),
            config: self.tools.config(),
            billing: &self.billing,
            on_cost: &on_cost,
            budget: Some(&self.budget),
            deadline: Some(self.soon()),
            turns: None,
        };
        let judged = self.judge.judge(&judging, pairs).await?;
        let said: Option<Vec<Said>> = judged.said.into_iter().collect();
        if said.is_none() {
            tracing::warn!(answer.id = %self.answer.id, unanswered = ?judged.unanswered, "a checker did not answer");
            self.silence();
        }
        Ok(said)
    }

    /// How facts stand to sentences: as the checker says, or as rules do.
    pub(super) async fn postures(&self, pairs: &[Pair<'_>]) -> Result<Vec<Said>, Stop> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        if matches!(self.judge, Judge::Model { .. })
            && !self.is_silent()
            && let Some(said) = self.judged(pairs).await?
        {
            return Ok(said);
        }
        let on_cost = |_: Cost| ();
        let judging = Judging {
            ai: self.tools.ai(),
            config: self.tools.config(),
            billing: &self.billing,
            on_cost: &on_cost,
            budget: None,
            deadline: None,
            turns: None,
        };
        Ok(Judge::Rule.judge(&judging, pairs).await?.said.into_iter().flatten().collect())
    }
}

fn pair<'p>(sentence: &'p str, fact: &'p str, language: Option<&'p str>) -> Pair<'p> {
    Pair { sentence, fact, cosine: None, language }
}
