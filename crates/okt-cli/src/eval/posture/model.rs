//! Asks a model about the postures of a claim as the service does.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use okt_ai::{Dialogue, Turn, Unanswered};
use okt_config::{AiProvider, Loaded};
use okt_extract::posture::{self, Judgement, PAIRS_PER_QUESTION};
use okt_extract::{Phase, Promptset};
use okt_providers::GuardedClient;
use okt_providers::ai::{Model, Models};
use url::Url;

use super::set::Case;

pub struct Asking {
    model: Model,
    promptset: Promptset,
    counts: RefCell<Counts>,
}

#[derive(Default)]
struct Counts {
    calls: usize,
    /// Answers that could not be used, by any of their pairs.
    refused: usize,
    /// Pairs that nothing usable was said of.
    unsaid: usize,
    /// What was said otherwise than it is believed.
    disbelieved: usize,
}

impl Asking {
    /// The configuration says how often a call is tried again; the model and its address are only those that are named.
    pub fn new(loaded: &Loaded, url: &Url, name: &str, prompt: Option<&Path>) -> anyhow::Result<Self> {
        let mut config = loaded.config.clone();
        let ai = &mut config.providers.ai;
        ai.local.base_url = Some(url.clone());
        let model = serde_json::json!({ "id": name, "provider": AiProvider::Local });
        ai.models = vec![serde_json::from_value(model).context("can't name the model")?];
        let client = GuardedClient::of(&config.providers)?;
        let model = Models::new(&config, &client)
            .find(name)
            .with_context(|| format!("{name} is no name of a model"))?;
        let promptset = match prompt {
            None => Promptset::builtin(),
            Some(path) => {
                let text =
                    fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
                Promptset::builtin().with([(Phase::Posture, text.trim_end().to_owned())].into())
            }
        };
        Ok(Self { model, promptset, counts: RefCell::default() })
    }

    pub fn name(&self) -> &str {
        self.model.id()
    }

    pub async fn judge(&self, case: &Case) -> anyhow::Result<Vec<Judgement>> {
        let mut judged = Vec::with_capacity(case.facts.len());
        for facts in case.facts.chunks(PAIRS_PER_QUESTION) {
            let pairs: Vec<(&str, &str)> =
                facts.iter().map(|fact| (case.claim.as_str(), fact.as_str())).collect();
            for ((claim, fact), said) in pairs.iter().zip(self.ask(&pairs).await?) {
                let mut counts = self.counts.borrow_mut();
                let Some(said) = said else {
                    counts.unsaid += 1;
                    judged.push(posture::rule(claim, fact, None, Some("en")));
                    continue;
                };
                let believed = posture::believed(claim, fact, said, Some("en"));
                counts.disbelieved += usize::from(believed.posture != said.posture);
                judged.push(believed);
            }
        }
        Ok(judged)
    }

    async fn ask(&self, pairs: &[(&str, &str)]) -> anyhow::Result<Vec<Option<Judgement>>> {
        let question = posture::question_of(&self.promptset, pairs);
        let mut dialogue = Dialogue::new(&question, None);
        loop {
            let reply = match self.model.chat(dialogue.chat(), || async { Ok(()) }).await {
                Ok(reply) => reply,
                Err(error) => match Unanswered::from(error) {
                    Unanswered::Unusable { .. } => return Ok(vec![None; pairs.len()]),
                    Unanswered::Permanent { message, .. } => bail!("{message}"),
                    Unanswered::Wait { .. } => bail!("{} limits the rate of requests", self.model.id()),
                    Unanswered::Retryable(error) => return Err(error.into()),
                },
            };
            self.counts.borrow_mut().calls += 1;
            match dialogue.take(&reply, |answer| posture::read(answer, pairs.len())).1 {
                Turn::Done(said) => return Ok(said),
                Turn::Again { .. } => self.counts.borrow_mut().refused += 1,
                Turn::Unusable { .. } => {
                    self.counts.borrow_mut().refused += 1;
                    return Ok(vec![None; pairs.len()]);
                }
            }
        }
    }

    pub fn told(&self) -> String {
        let Counts { calls, refused, unsaid, disbelieved } = &*self.counts.borrow();
        format!(
            "  {calls} calls, {refused} answers refused, {unsaid} pairs without an answer, {disbelieved} not believed\n"
        )
    }
}
