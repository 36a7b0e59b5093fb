//! Answers to questions.

use std::time::Duration;

use okt_app::{AskRequest, Asked};
use okt_auth::permissions::FactRead;
use okt_http::{Code, Problem};
use okt_model::{AnswerFilters, AnswerId, Error};
use okt_wire::answers::{AnswerView, Shown};
use okt_wire::vocabulary::read_if_given;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{CHANGE, Tool, needs};
use crate::mcp::call::{Call, Outcome, Place, done};
use crate::mcp::schema::{input, output};

/// A tool has to answer within 50 seconds.
const PATIENCE: Duration = Duration::from_secs(40);

pub(super) const ASK: Tool = Tool {
    name: "ask",
    title: "Ask a question",
    description: "An answer from the facts of a repository: sentences that were checked, each with its facts and a verdict, and what is \
                  missing. No sentence means that nothing is known. A model that costs money is asked only if you may write reports \
                  there; that costs no more than an operator allows for an answer.",
    // It keeps an answer, tells webhooks, and may spend money.
    hints: CHANGE,
    needs: needs::<FactRead>,
    pages: false,
    creates: true,
    input: input::<Arguments>,
    output: output::<Answer>,
    run: |call| Box::pin(ask(call)),
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Id or slug; may be left out if you can see only one.
    repository: Option<String>,
    /// Needed unless `answer_id` is given.
    #[schema(min_length = 3, max_length = 2000)]
    question: Option<String>,
    /// `auto` (the default), `extractive` (no model) or `model`.
    mode: Option<String>,
    /// The most that it may cost, in US dollars; no more than `ask.max_cost_usd` of the installation.
    max_cost_usd: Option<f64>,
    /// Of an answer that was still being written: it is read again, and nothing is asked.
    answer_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "as the argument by which it is asked for again")]
struct Answer {
    answer_id: Uuid,
    /// `answered`, `partly`, `abstained`, `extractive`, or `running`: call again with `answer_id`.
    status: &'static str,
    abstained: bool,
    sentences: Vec<Sentence>,
    /// What the question asks for and the facts do not say.
    missing: Option<String>,
    disagreeing: Vec<Disagreeing>,
    dropped: usize,
    model: Option<String>,
    extractive_reason: Option<&'static str>,
    cost_usd: f64,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Sentence {
    text: String,
    verdict: &'static str,
    facts: Vec<Cited>,
}

#[derive(Serialize, ToSchema)]
struct Cited {
    fact_id: Option<Uuid>,
    quote: String,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Disagreeing {
    sentence: u32,
    fact_id: Option<Uuid>,
    text: String,
    url: String,
}

async fn ask(call: &Call) -> Result<Outcome, Problem> {
    let arguments: Arguments = call.arguments().await?;
    let place: Place<FactRead> = call.repository(arguments.repository.as_deref()).await?;
    let app = &call.server.api.app;
    let id: AnswerId = if let Some(id) = arguments.answer_id {
        id.into()
    } else {
        let question = arguments
            .question
            .ok_or_else(|| Error::invalid("question", "is needed unless answer_id is given"))?;
        let most = app.config().ask.max_cost_usd;
        let request = AskRequest {
            question,
            mode: read_if_given("mode", arguments.mode.as_deref())?,
            filters: AnswerFilters::default(),
            // Whoever wrote the arguments may have read a page that told it to.
            max_cost_usd: arguments.max_cost_usd.map(|usd| usd.min(most)),
            ..AskRequest::default()
        };
        match app.ask_question(&place.scope, &request).await? {
            Asked::New(answer) | Asked::Again(answer) => answer.id,
            Asked::Mismatch => {
                return Err(Problem::new(Code::Internal, "a question without a key matches no other"));
            }
        }
    };
    app.await_answer(&place.scope, id, PATIENCE).await?;
    let seen = app.find_answer(&place.scope, id).await?;
    done(shown(Shown { slug: &place.slug }.answer(seen, false), &place))
}

fn shown(view: AnswerView, place: &Place<FactRead>) -> Answer {
    let cited = |key: &String| {
        let fact = view.facts.iter().find(|fact| fact.key == *key)?;
        let url = match fact.id {
            Some(id) => place.url("facts", id),
            None => place.url("sources", fact.source.as_ref()?.id),
        };
        let quote = fact.quote.clone().unwrap_or_else(|| fact.text.clone());
        Some(Cited { fact_id: fact.id, quote, url })
    };
    let sentences = view.sentences.iter().map(|sentence| Sentence {
        text: sentence.text.clone(),
        verdict: sentence.verdict,
        facts: sentence.keys.iter().filter_map(cited).collect(),
    });
    let disagreeing = view.disagreeing.iter().flat_map(|one| {
        one.facts.iter().map(|fact| Disagreeing {
            sentence: one.index,
            fact_id: fact.evidence.id,
            text: fact.evidence.text.clone(),
            url: fact.evidence.id.map(|id| place.url("facts", id)).unwrap_or_default(),
        })
    });
    Answer {
        answer_id: view.row.id,
        status: view.row.status,
        abstained: view.row.status == "abstained",
        sentences: sentences.collect(),
        disagreeing: disagreeing.collect(),
        dropped: view.dropped.len(),
        url: place.url("answers", view.row.id),
        cost_usd: view.cost.usd,
        missing: view.missing,
        model: view.model,
        extractive_reason: view.extractive_reason,
    }
}
