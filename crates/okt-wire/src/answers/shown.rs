//! From what is stored of an answer to what is shown of it, whole and event by event.

use chrono::Datelike as _;
use okt_app::SeenAnswer;
use okt_model::{
    AnswerEvent, AnswerFilters, AnswerMode, AnswerSentence, AnswerStatus, Cited, Cost, Coverage,
    DisagreeingFact, DropReason, DroppedSentence, Evidence, EvidenceKind, Feedback, FoundThrough,
    NamedConcept, WhyExtractive,
};

use super::AskFilters;
use super::view::{
    AnswerRowOfView, AnswerView, CostView, CoverageView, DisagreeingFactView, DisagreeingView, DroppedView,
    EventView, EvidenceChangeView, EvidenceSourceView, EvidenceView, FeedbackView, GroupView,
    NamedConceptView, ProblemView, SentenceView, TraceView, Understood, ViaView,
};

/// Turns what is stored into what is shown. `slug` is that of the repository.
pub struct Shown<'s> {
    pub slug: &'s str,
}

impl Shown<'_> {
    fn evidence(&self, one: Evidence) -> EvidenceView {
        let Self { slug } = self;
        let fact = one.fact.map(okt_model::FactId::uuid);
        let source = one.source.map(|source| {
            let mut asked = Vec::new();
            asked.extend(fact.map(|fact| format!("fact={fact}")));
            asked.extend(source.page.map(|page| format!("page={page}")));
            let sign = if asked.is_empty() { "" } else { "?" };
            let url = format!("/r/{slug}/sources/{}{sign}{}", source.id, asked.join("&"));
            EvidenceSourceView {
                id: source.id.uuid(),
                title: source.title,
                year: source.published_at.map(|day| day.year()),
                page: source.page,
                url,
            }
        });
        let of_source = source.as_ref().map(|source| source.url.clone()).unwrap_or_default();
        EvidenceView {
            key: one.key,
            kind: one.kind.as_str(),
            id: fact,
            text: one.text,
            quote: one.quote,
            url: match (one.kind, fact) {
                (EvidenceKind::Fact, Some(fact)) => format!("/r/{slug}/facts/{fact}"),
                _ => of_source,
            },
            source,
            score: one.score,
            found_by: one.found_by.into_iter().map(FoundThrough::as_str).collect(),
            via: one.via.map(|via| ViaView {
                concept_id: via.concept.map(okt_model::ConceptId::uuid),
                name: via.name,
            }),
            retracted: false,
            superseded: one.superseded,
        }
    }

    fn disagreeing(&self, one: DisagreeingFact) -> DisagreeingFactView {
        DisagreeingFactView {
            evidence: self.evidence(one.evidence),
            against: one.against.uuid(),
            confidence: one.confidence,
            judged_by: one.judged_by,
        }
    }

    /// An event as it is streamed.
    pub fn event(&self, answer: &okt_model::Answer, event: AnswerEvent) -> EventView {
        let data = |name, data: serde_json::Result<serde_json::Value>| EventView {
            name,
            data: data.unwrap_or_default(),
        };
        match event {
            AnswerEvent::Understood { mode, why_extractive, concepts, .. } => {
                let view = Understood {
                    answer_id: answer.id.uuid(),
                    question: answer.question.clone(),
                    // As whoever looks may see it: names of a conversation are its owner's alone.
                    question_as_searched: answer.searched.clone(),
                    mode: mode.as_str(),
                    extractive_reason: why_extractive.map(WhyExtractive::as_str),
                    concepts: concepts.into_iter().map(NamedConceptView::from).collect(),
                    conversation_id: answer.conversation.map(okt_model::ConversationId::uuid),
                };
                data("understood", serde_json::to_value(view))
            }
            AnswerEvent::Evidence { facts, near_only, degraded } => {
                let facts: Vec<EvidenceView> = facts.into_iter().map(|one| self.evidence(one)).collect();
                let view = serde_json::json!({
                    "facts": facts, "near_only": near_only, "degraded_reason": degraded,
                });
                data("evidence", Ok(view))
            }
            AnswerEvent::Sentence(sentence) => {
                data("sentence", serde_json::to_value(SentenceView::from(sentence)))
            }
            AnswerEvent::Dropped(dropped) => {
                data("dropped", serde_json::to_value(DroppedView::from(dropped)))
            }
            AnswerEvent::Disagreeing { index, facts } => {
                let facts = facts.into_iter().map(|one| self.disagreeing(one)).collect();
                data("disagreeing", serde_json::to_value(DisagreeingView { index, facts }))
            }
            AnswerEvent::Cost { cost, calls } => {
                data("cost", serde_json::to_value(CostView::new(cost, calls)))
            }
            AnswerEvent::Turned { why } => {
                let view = serde_json::json!({
                    "mode": AnswerMode::Extractive.as_str(), "extractive_reason": why.as_str(),
                });
                data("turned", Ok(view))
            }
            AnswerEvent::Done { status, coverage, missing, model, cached, took_ms, why_extractive } => {
                let view = serde_json::json!({
                    "answer_id": answer.id.uuid(), "status": status.as_str(),
                    "coverage": CoverageView::from(coverage), "missing": missing, "model": model,
                    "cached": cached, "took_ms": took_ms,
                    "extractive_reason": why_extractive.map(WhyExtractive::as_str),
                });
                data("done", Ok(view))
            }
            AnswerEvent::Error { code, message } => {
                data("error", serde_json::to_value(problem(code, message)))
            }
        }
    }

    /// An answer as a whole.
    pub fn answer(&self, seen: SeenAnswer, explain: bool) -> AnswerView {
        let SeenAnswer { answer, is_own, events, changes, feedback } = seen;
        let mut view = AnswerView {
            row: AnswerRowOfView {
                id: answer.id.uuid(),
                url: format!("/r/{}/answers/{}", self.slug, answer.id),
                question: answer.question,
                status: answer.status.as_str(),
                mode: answer.mode.as_str(),
                conversation_id: answer.conversation.map(okt_model::ConversationId::uuid),
                is_own,
                shared: answer.shared,
                created_at: answer.created_at,
                finished_at: answer.finished_at,
            },
            question_as_searched: answer.searched,
            mode_asked: answer.mode_asked.as_str(),
            extractive_reason: answer.why_extractive.map(WhyExtractive::as_str),
            model: answer.model,
            check_model: answer.check_model,
            ask_version: answer.ask_version,
            asked_by: answer.asked_by.uuid(),
            concepts: Vec::new(),
            filters: answer.filters.into(),
            facts: Vec::new(),
            near_only: false,
            degraded_reason: None,
            sentences: Vec::new(),
            dropped: Vec::new(),
            disagreeing: Vec::new(),
            missing: None,
            coverage: Coverage::of(&events).into(),
            cost: CostView::default(),
            cached: answer.cached,
            took_ms: answer.finished_at.map(|end| (end - answer.created_at).num_milliseconds()),
            evidence_changed: changes
                .into_iter()
                .map(|(cited, change)| {
                    let (fact_id, key) = match cited {
                        Cited::Fact(fact) => (Some(fact.uuid()), None),
                        Cited::Passage(key) => (None, Some(key)),
                    };
                    EvidenceChangeView { fact_id, key, change: change.as_str() }
                })
                .collect(),
            feedback: feedback.into_iter().map(FeedbackView::from).collect(),
            problem: None,
            job_id: answer.job.map(okt_model::JobId::uuid),
            trace: None,
        };
        let mut lines: Vec<(u32, Vec<String>)> = Vec::new();
        for event in events {
            match event {
                AnswerEvent::Understood { concepts, .. } => {
                    view.concepts = concepts.into_iter().map(NamedConceptView::from).collect();
                }
                AnswerEvent::Evidence { facts, near_only, degraded } => {
                    view.facts = facts.into_iter().map(|one| self.evidence(one)).collect();
                    (view.near_only, view.degraded_reason) = (near_only, degraded);
                }
                AnswerEvent::Sentence(sentence) => {
                    lines.push((sentence.line, sentence.keys.clone()));
                    view.sentences.push(sentence.into());
                }
                AnswerEvent::Dropped(dropped) => view.dropped.push(dropped.into()),
                AnswerEvent::Disagreeing { index, facts } => {
                    let facts = facts.into_iter().map(|one| self.disagreeing(one)).collect();
                    view.disagreeing.push(DisagreeingView { index, facts });
                }
                AnswerEvent::Cost { cost, calls } => view.cost = CostView::new(cost, calls),
                AnswerEvent::Turned { .. } => {}
                AnswerEvent::Done { missing, .. } => view.missing = missing,
                AnswerEvent::Error { code, message } => view.problem = Some(problem(code, message)),
            }
        }
        // What is shown under "I don't know" is no citation.
        view.near_only |= answer.status == AnswerStatus::Abstained;
        if explain {
            let traced = view.facts.iter().enumerate().map(|(at, fact)| TraceView {
                key: fact.key.clone(),
                rank: at + 1,
                score: fact.score,
                found_by: fact.found_by.clone(),
                lines: lines
                    .iter()
                    .filter(|(_, keys)| keys.contains(&fact.key))
                    .map(|(line, _)| *line)
                    .collect(),
            });
            view.trace = Some(traced.collect());
        }
        view
    }
}

fn problem(code: String, detail: String) -> ProblemView {
    ProblemView { kind: "about:blank", title: "The answer failed", status: 500, detail, code }
}

impl From<AnswerFilters> for AskFilters {
    fn from(filters: AnswerFilters) -> Self {
        Self {
            source_ids: filters.source_ids.into_iter().map(okt_model::SourceId::uuid).collect(),
            concept_ids: filters.concept_ids.into_iter().map(okt_model::ConceptId::uuid).collect(),
            context: filters.context,
            published_from: filters.published_from,
            published_to: filters.published_to,
        }
    }
}

impl From<NamedConcept> for NamedConceptView {
    fn from(concept: NamedConcept) -> Self {
        Self { id: concept.id.uuid(), name: concept.name }
    }
}

impl From<AnswerSentence> for SentenceView {
    fn from(sentence: AnswerSentence) -> Self {
        Self {
            index: sentence.index,
            text: sentence.text,
            fact_ids: sentence.facts.into_iter().map(okt_model::FactId::uuid).collect(),
            keys: sentence.keys,
            verdict: sentence.verdict.as_str(),
            confidence: sentence.confidence,
            method: sentence.method.as_str(),
            group: sentence.group.map(|group| GroupView { concept_id: group.id.uuid(), name: group.name }),
        }
    }
}

impl From<DroppedSentence> for DroppedView {
    fn from(dropped: DroppedSentence) -> Self {
        let text = dropped.is_shown.then_some(dropped.text);
        Self { text, code: DropReason::as_str(dropped.code), reason: dropped.reason }
    }
}

impl From<Coverage> for CoverageView {
    fn from(coverage: Coverage) -> Self {
        let Coverage { written, shown, supported, contradicted, unverified, dropped } = coverage;
        Self { written, shown, supported, contradicted, unverified, dropped }
    }
}

impl CostView {
    fn new(cost: Cost, calls: u32) -> Self {
        Self { usd: cost.usd.to_usd(), tokens_in: cost.tokens_in, tokens_out: cost.tokens_out, calls }
    }
}

impl From<Feedback> for FeedbackView {
    fn from(feedback: Feedback) -> Self {
        Self { sentence: feedback.sentence, verdict: feedback.verdict.as_str(), note: feedback.note }
    }
}
