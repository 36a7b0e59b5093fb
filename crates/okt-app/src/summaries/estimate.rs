//! What it would cost to write a definition anew.

use okt_auth::RepoScope;
use okt_auth::permissions::ConceptUpdate;
use okt_extract::summaries::{InContext, Known, Material, Topic, slice_question, synthesis_question};
use okt_model::{ConceptId, Error, Money, Operation, Result};
use okt_store::concept_summaries::{self, SliceFact};
use okt_store::concepts;

use crate::App;
use crate::concepts::get;
use crate::estimates::{Asked, tokens};

/// What models write for each token of the facts that they sum up, and of the texts that they make a definition of.
const SUMMED_UP: f64 = 0.7;
const DEFINED: f64 = 0.6;
/// Contexts of a name that are looked at.
const CONTEXTS: i64 = 100;

/// What a definition would cost, with the slices that are not written yet.
pub struct SynthesisEstimate {
    pub model: String,
    /// Whether it rests on what this repository has seen of the model, or on a rule of thumb.
    pub from_history: bool,
    pub calls: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: Money,
}

impl App {
    pub async fn estimate_resynthesis(
        &self,
        scope: &RepoScope<ConceptUpdate>,
        id: ConceptId,
    ) -> Result<SynthesisEstimate> {
        let repository = scope.repository();
        // Whether it is here is said first.
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        tx.commit().await?;
        self.check_synthesis(scope).await?;
        let (promptset, _) = self.chosen(scope).await?;
        let (summaries, syntheses) =
            (&self.config().providers.summarization, &self.config().providers.synthesis);
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let slices = concept_summaries::list_named(&mut tx, repository, &concept.name_key).await?;
        let names = std::slice::from_ref(&concept.name_key);
        let mut contexts = concepts::list_contexts(&mut tx, repository, names, CONTEXTS).await?;
        let mut unwritten = Vec::new();
        for context in contexts.remove(&concept.name_key).unwrap_or_default() {
            if let Some(of) = concepts::get(&mut tx, repository, context.id).await? {
                for slice in concept_summaries::list_unwritten(&mut tx, repository, of.no).await? {
                    unwritten.push((of.clone(), slice));
                }
            }
        }
        tx.commit().await?;
        if slices.is_empty() && unwritten.is_empty() {
            return Err(Error::Conflict("the concept has no summaries yet to write a definition from"));
        }
        let asked: Vec<Asked> = unwritten
            .iter()
            .map(|(of, slice)| {
                let topic = Topic { name: &of.canonical_name, context: &of.context };
                let facts = known(&slice.facts);
                let question = slice_question(&promptset, &topic, &facts, summaries.max_tokens);
                Asked::new(&question, &summaries.model, facts.iter().map(|fact| fact.text))
            })
            .collect();
        let history = self.history(scope, &summaries.model, Operation::ConceptSummary).await?;
        let (reads, writes) = tokens(&asked.iter().collect::<Vec<_>>(), history, SUMMED_UP);
        let price = self.price_of(&summaries.model, reads, writes);

        let facts: Vec<Known<'_>> = slices.iter().flat_map(|slice| known(&slice.facts)).collect();
        let texts: Vec<&str> = slices.iter().map(|slice| slice.content.as_str()).collect();
        let contexts = [InContext { context: &concept.context, texts: &texts }];
        let material = Material {
            name: &concept.canonical_name,
            contexts: &contexts,
            facts: &facts,
            ..Material::default()
        };
        let question = synthesis_question(&promptset, &material, syntheses.max_tokens);
        let definition = Asked::new(&question, &syntheses.model, texts.iter().copied());
        let history = self.history(scope, &syntheses.model, Operation::ConceptSynthesis).await?;
        let (more_reads, more_writes) = tokens(&[&definition], history, DEFINED);
        let more_writes = more_writes.min(u64::from(syntheses.max_tokens));
        Ok(SynthesisEstimate {
            model: syntheses.model.clone(),
            from_history: history.is_some(),
            calls: u64::try_from(asked.len()).unwrap_or(u64::MAX).saturating_add(1),
            tokens_in: reads + more_reads,
            tokens_out: writes + more_writes,
            usd: price + self.price_of(&syntheses.model, more_reads, more_writes),
        })
    }
}

fn known(facts: &[SliceFact]) -> Vec<Known<'_>> {
    let known = facts.iter().map(|fact| Known {
        id: fact.id,
        text: &fact.text,
        sources: u32::try_from(fact.source_count).unwrap_or(0),
    });
    known.collect()
}
