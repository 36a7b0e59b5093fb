//! A report for people: Markdown with footnotes, and a page that needs nothing but itself.
//!
//! Neither format decides how a claim stands: that is handed in with what it rests on.

mod html;
mod markdown;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use okt_app::ReportExport;
use okt_model::{FactId, Posture, SentenceState};

pub use html::{html, html_policy};
pub use markdown::markdown;

use super::Citation;

/// A report with what its claims were held against.
#[derive(Clone, Debug)]
pub struct PrintedReport {
    pub title: String,
    /// Markdown, as somebody wrote it.
    pub body: String,
    /// ISO 639.
    pub language: Option<String>,
    pub checked_at: Option<DateTime<Utc>>,
    /// In the order of the body; none overlaps another.
    pub claims: Vec<PrintedClaim>,
    /// What the facts come from. The number of each is its place, from 1.
    pub sources: Vec<Citation>,
}

/// A sentence that claims something.
#[derive(Clone, Debug)]
pub struct PrintedClaim {
    /// Code points of the body.
    pub start: usize,
    pub end: usize,
    pub standing: Standing,
    pub evidence: Vec<Evidence>,
}

/// A fact that a claim was held against.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub posture: Posture,
    pub fact: FactId,
    pub text: String,
    /// Numbers of sources of the report.
    pub sources: Vec<usize>,
    /// All of its sources were retracted.
    pub retracted: bool,
    /// All of its sources are superseded.
    pub superseded: bool,
}

impl Evidence {
    /// What a reader should know of its sources.
    const fn warning(&self) -> Option<&'static str> {
        if self.retracted {
            Some("all its sources were retracted")
        } else if self.superseded {
            Some("all its sources are superseded")
        } else {
            None
        }
    }
}

/// How a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Supported,
    Contradicted,
    Unsupported,
    /// Not since it was written or something came that concerns it.
    Unchecked,
}

impl Standing {
    pub(super) const ALL: [Self; 4] =
        [Self::Supported, Self::Contradicted, Self::Unsupported, Self::Unchecked];

    /// As people read it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Contradicted => "contradicted",
            Self::Unsupported => "unsupported",
            Self::Unchecked => "not checked",
        }
    }
}

impl From<ReportExport> for PrintedReport {
    fn from(export: ReportExport) -> Self {
        let numbers: HashMap<i64, usize> =
            export.sources.iter().enumerate().map(|(at, (no, _))| (*no, at + 1)).collect();
        let point = |at: i32| usize::try_from(at).unwrap_or(0);
        let claims = export.claims.into_iter().map(|(sentence, annotations)| {
            let standing = match sentence.state {
                None => Standing::Unchecked,
                Some(SentenceState::Supported) => Standing::Supported,
                Some(SentenceState::Contradicted) => Standing::Contradicted,
                Some(SentenceState::Unsupported) => Standing::Unsupported,
            };
            let evidence = annotations.into_iter().map(|said| Evidence {
                posture: said.posture.unwrap_or(Posture::Related),
                fact: said.fact,
                sources: export
                    .sources_of
                    .get(&said.fact_no)
                    .into_iter()
                    .flatten()
                    .filter_map(|no| numbers.get(no).copied())
                    .collect(),
                text: said.fact_text,
                retracted: said.retracted,
                superseded: said.superseded,
            });
            PrintedClaim {
                start: point(sentence.start),
                end: point(sentence.end),
                standing,
                evidence: evidence.collect(),
            }
        });
        Self {
            claims: claims.collect(),
            title: export.report.title,
            body: export.body,
            language: export.report.language,
            checked_at: export.report.checked_at,
            sources: export.sources.into_iter().map(|(_, source)| source.into()).collect(),
        }
    }
}

impl PrintedReport {
    /// Each claim with its place in bytes, and the number of its note where it has one. What does not fit the body, or the claim
    /// before, is left out.
    fn placed(&self) -> Vec<Placed<'_>> {
        let mut bytes = self.body.char_indices().map(|(at, _)| at).chain([self.body.len()]).enumerate();
        let mut byte = |point: usize| bytes.find(|(at, _)| *at == point).map(|(_, byte)| byte);
        let (mut placed, mut reached, mut notes) = (Vec::new(), None, 0);
        for claim in &self.claims {
            if claim.start >= claim.end || reached.is_some_and(|end| claim.start < end) {
                continue;
            }
            // A claim may begin where the one before ended.
            let start = match placed.last() {
                Some(Placed { end, .. }) if reached == Some(claim.start) => Some(*end),
                _ => byte(claim.start),
            };
            let Some((start, end)) = start.zip(byte(claim.end)) else { break };
            let note = (!claim.evidence.is_empty()).then(|| {
                notes += 1;
                notes
            });
            placed.push(Placed { claim, start, end, note });
            reached = Some(claim.end);
        }
        placed
    }

    /// How many claims stand so.
    fn count(&self, standing: Standing) -> usize {
        self.claims.iter().filter(|claim| claim.standing == standing).count()
    }

    /// One line that says how the report stands.
    fn summary(&self) -> String {
        let total = self.claims.len();
        let counts: Vec<String> = Standing::ALL
            .into_iter()
            .filter(|standing| *standing != Standing::Unchecked || self.count(*standing) > 0)
            .map(|standing| format!("{} {}", self.count(standing), standing.word()))
            .collect();
        let claims = if total == 1 { "1 claim".to_owned() } else { format!("{total} claims") };
        let checked = self.checked_at.map_or_else(
            || "Not checked as a whole yet".to_owned(),
            |at| format!("Checked {}", at.format("%Y-%m-%d")),
        );
        format!("{checked}: {claims}, of these {}.", counts.join(", "))
    }

    /// Whether its text begins with its title already. With four spaces before it, it is code.
    fn is_titled(&self) -> bool {
        let first = self.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let words = first.trim_start_matches(' ');
        let heading = words.strip_prefix("# ").filter(|_| first.len() - words.len() < 4);
        heading.is_some_and(|heading| heading.trim() == self.title.trim())
    }
}

struct Placed<'a> {
    claim: &'a PrintedClaim,
    start: usize,
    end: usize,
    note: Option<usize>,
}

/// The words before a fact.
const fn relation(posture: Posture) -> &'static str {
    match posture {
        Posture::Supports => "supports it",
        Posture::Contradicts => "contradicts it",
        Posture::Related => "is related",
    }
}

/// What the standing of a claim without a note means.
const fn explained(standing: Standing) -> &'static str {
    match standing {
        Standing::Supported => "A fact of the repository supports it.",
        Standing::Contradicted => "A fact of the repository contradicts it.",
        Standing::Unsupported => "No fact of the repository supports or contradicts it.",
        Standing::Unchecked => {
            "It was not checked since it was written, or since something came that concerns it."
        }
    }
}

#[cfg(test)]
mod tests {
    use okt_model::SourceId;
    use uuid::Uuid;

    use super::*;

    pub(super) fn claim(body: &str, sentence: &str, standing: Standing) -> PrintedClaim {
        let byte = body.find(sentence).unwrap();
        let start = body[..byte].chars().count();
        PrintedClaim { start, end: start + sentence.chars().count(), standing, evidence: Vec::new() }
    }

    pub(super) fn evidence(posture: Posture, text: &str, sources: &[usize]) -> Evidence {
        let fact = FactId::from(Uuid::from_u128(9));
        let (text, sources) = (text.to_owned(), sources.to_vec());
        Evidence { posture, fact, text, sources, retracted: false, superseded: false }
    }

    pub(super) fn source(title: &str) -> Citation {
        Citation {
            id: SourceId::from(Uuid::from_u128(7)),
            title: title.to_owned(),
            authors: vec!["Moss, Ada".to_owned()],
            site: Some("Journal of Bees".to_owned()),
            url: Some("https://example.org/bees".to_owned()),
            doi: Some("10.1000/182".to_owned()),
            published: None,
            accessed: None,
            language: None,
            note: None,
        }
    }

    pub(super) fn report(body: &str, claims: Vec<PrintedClaim>) -> PrintedReport {
        PrintedReport {
            title: "On bees".to_owned(),
            body: body.to_owned(),
            language: Some("en".to_owned()),
            checked_at: None,
            claims,
            sources: Vec::new(),
        }
    }

    #[test]
    fn code_is_no_title() {
        for (body, is) in [("\n   # On bees\n", true), ("    # On bees\n", false), ("\t# On bees\n", false)] {
            assert_eq!(report(body, Vec::new()).is_titled(), is, "{body:?}");
        }
    }

    #[test]
    fn claims_are_placed_by_code_points() {
        let body = "蜂 fly. 🐝 dance. End.";
        let claims = ["蜂 fly.", " 🐝 dance.", "End."].map(|text| claim(body, text, Standing::Supported));
        let report = report(body, claims.to_vec());
        let texts: Vec<&str> = report.placed().iter().map(|one| &body[one.start..one.end]).collect();
        assert_eq!(texts, ["蜂 fly.", " 🐝 dance.", "End."]);
    }

    #[test]
    fn a_claim_that_fits_nowhere_is_left_out() {
        let at =
            |start, end| PrintedClaim { start, end, standing: Standing::Supported, evidence: Vec::new() };
        let broken = vec![at(5, 2), at(0, 4), at(3, 6), at(4, 8), at(9, 900), at(1000, 2000)];
        let report = report("0123456789", broken);
        let places: Vec<_> = report.placed().iter().map(|one| (one.start, one.end)).collect();
        assert_eq!(places, [(0, 4), (4, 8)]);
    }
}
