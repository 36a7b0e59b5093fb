//! Rerankers: how well texts answer a question, as Jina, Cohere and servers like theirs say it at `/rerank`.
//!
//! Texts are sent as plain strings, which all of them take. An answer has `results` with `index` and `relevance_score`, or `data`
//! or `score` in their place; whether it repeats the texts, and how, is of no interest. What it says is data: a result that names
//! no text, names one for the second time or has no number is left out.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::remote::Remote;
use super::wire::{MOST_TOKENS, tokens};
use super::{AiError, Reranked, Usage};

/// No request is charged for more; a server that says so has said nothing.
const MOST_SEARCHES: u64 = 1_000;

#[derive(Deserialize)]
struct Answer {
    #[serde(alias = "data")]
    results: Vec<Value>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    meta: Value,
}

impl Remote {
    /// Asks once: whoever searches does not wait for a second try.
    pub(super) async fn rerank<T, F>(
        &self,
        question: &str,
        texts: &[String],
        turn: T,
    ) -> Result<Reranked, AiError>
    where
        T: Fn() -> F,
        F: Future<Output = okt_model::Result<()>>,
    {
        let asked = json!({
            "model": self.settings.id, "query": question, "documents": texts, "top_n": texts.len(),
        });
        let read = |answer: &[u8]| self.endpoint.read_reranked(answer, question, texts);
        let answer = self.ask_one("rerank", Bytes::from(asked.to_string()), turn, read).await?;
        Ok(Reranked { latency: answer.latency, ..answer.value })
    }
}

impl Endpoint {
    fn read_reranked(&self, answer: &[u8], question: &str, texts: &[String]) -> Result<Reranked, AiError> {
        let answer: Answer = self.read(answer)?;
        let mut scores: Vec<Option<f64>> = vec![None; texts.len()];
        for result in &answer.results {
            let index = result["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            let score = result["relevance_score"].as_f64().or_else(|| result["score"].as_f64());
            let place = index.and_then(|index| scores.get_mut(index));
            if let (Some(place), Some(score)) = (place, score.filter(|score| score.is_finite())) {
                place.get_or_insert(score);
            }
        }
        if scores.iter().all(Option::is_none) {
            return Err(self.not_a_model("it ranks none of the texts"));
        }
        let (usage, searches) = answer.paid(question, texts);
        Ok(Reranked { scores, usage, searches, latency: std::time::Duration::ZERO })
    }
}

impl Answer {
    /// What was read, and how many searches are paid for.
    fn paid(&self, question: &str, texts: &[String]) -> (Usage, u64) {
        let count = |value: &Value, most: u64| value.as_u64().filter(|count| *count <= most);
        let billed = &self.meta["billed_units"];
        let said = [&self.usage["prompt_tokens"], &self.usage["total_tokens"], &billed["input_tokens"]];
        let said = said.into_iter().find_map(|value| count(value, MOST_TOKENS));
        // It reads the question with each of them.
        let own = || texts.iter().map(|text| tokens(text) + tokens(question)).sum();
        let usage = Usage { tokens_in: said.unwrap_or_else(own), tokens_out: 0, estimated: said.is_none() };
        (usage, count(&billed["search_units"], MOST_SEARCHES).unwrap_or(1))
    }
}
