//! What it would cost to write a definition anew.

use okt_ai::Gathered;
use okt_auth::RepoScope;
use okt_auth::permissions::ConceptUpdate;
use okt_extract::summaries::read_picked;
use okt_model::{ConceptId, Error, Money, Operation, Result};
use okt_store::{Connection, model_answers};

use crate::App;
use crate::concepts::get;
use crate::estimates::{Asked, tokens};

use super::NO_SUMMARIES;

/// What models write for each token of the texts that they make a definition of.
const DEFINED: f64 = 0.6;

/// What a definition would cost. Questions that were answered before cost nothing.
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
        let settings = &self.config().providers.synthesis;
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut gathered = Gathered::read(&mut tx, self.config(), repository, &concept).await?;
        if gathered.slices.is_empty() {
            return Err(Error::Conflict(NO_SUMMARIES));
        }
        let name = concept.canonical_name.as_str();
        let most = usize::try_from(settings.max_images).unwrap_or(usize::MAX);
        let mut open = Vec::new();
        if let Some(question) = gathered.picking(&promptset, name, most) {
            let texts = gathered.images.iter().map(|image| image.fact_text.as_str());
            let asked = Asked::new(&question, &settings.model, texts);
            let answer = answered(&mut tx, scope, &asked).await?;
            let picked = answer.and_then(|answer| read_picked(&answer, gathered.images.len(), most).ok());
            if picked.is_none() {
                open.push(asked);
            }
            // As many as will be.
            gathered.keep_images(&picked.unwrap_or_else(|| (0..most).collect()));
        }
        let question = gathered.parts().question(&promptset, name, settings);
        let texts = gathered.slices.iter().map(|slice| slice.content.as_str());
        let asked = Asked::new(&question, &settings.model, texts);
        if !open.is_empty() || answered(&mut tx, scope, &asked).await?.is_none() {
            open.push(asked);
        }
        tx.commit().await?;
        let history = self.history(scope, &settings.model, Operation::ConceptSynthesis).await?;
        let (reads, writes) = tokens(&open.iter().collect::<Vec<_>>(), history, DEFINED);
        let writes = writes.min(u64::from(settings.max_tokens));
        Ok(SynthesisEstimate {
            model: settings.model.clone(),
            from_history: history.is_some(),
            calls: u64::try_from(open.len()).unwrap_or(u64::MAX),
            tokens_in: reads,
            tokens_out: writes,
            usd: self.price_of(&settings.model, reads, writes),
        })
    }
}

/// What was answered to a question before.
async fn answered(
    conn: &mut Connection,
    scope: &RepoScope<ConceptUpdate>,
    asked: &Asked,
) -> Result<Option<String>> {
    let found = model_answers::list(conn, scope.repository(), &[asked.key]).await?;
    Ok(found.into_values().next().map(|known| known.answer))
}
