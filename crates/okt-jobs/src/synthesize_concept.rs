//! Says what a name means, in one text over all its contexts. Reads the slices of all concepts of that name and what they are
//! related to, and leaves another version of the definition; the same one if what it was made of has not changed.
//!
//! Facts that contradict each other are shown as pairs, and a text that cites only one side is refused. What can't be had keeps
//! the last version.

use std::sync::Arc;
use std::time::Duration;

use okt_ai::{Gathered, RepositoryBudget, Unanswered};
use okt_extract::summaries::{Attempt, only_citing, only_showing, read_picked, read_synthesis};
use okt_extract::{Misfit, Promptset, Question};
use okt_model::{Concept, Error, Operation, Progress, RepositoryId, Result, SynthesizeConcept, Waiting};
use okt_providers::ai::Model;
use okt_queue::{Finished, JobContext, JobError};
use okt_store::concept_syntheses::{self, NewSynthesis, Synthesis};
use okt_store::{Tx, concept_summaries, concepts, promptsets, repository_settings, summary_states};

use crate::Tools;
use crate::asking::{AboutConcept, Stopped};

/// How long a job waits for the summaries that it reads.
const UNFINISHED: Duration = Duration::from_secs(2);

pub(crate) async fn run(
    payload: SynthesizeConcept,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let used = promptsets::find_used(&mut conn, ctx.repository()).await?;
    drop(conn);
    // Two would ask the same.
    ctx.one_at_a_time().await?;
    let mut tx = ctx.checkpoint().await?;
    let Some(concept) = concepts::get(&mut tx, ctx.repository(), payload.concept).await? else {
        tx.commit().await?;
        return ctx.begin().await?.commit(None).await;
    };
    let name = concept.name_key.as_str();
    mend(&mut tx, ctx.repository(), name).await?;
    let on = tools.config().providers.synthesis.is_on(settings.stages.synthesis);
    let staleness = tools.config().providers.summarization.lock_staleness.duration();
    let unfinished = on
        && !payload.again
        && summary_states::is_name_held(&mut tx, ctx.repository(), name, staleness).await?;
    tx.commit().await?;
    if !on {
        return ctx.begin().await?.commit(None).await;
    }
    if unfinished {
        // Written now, it would be paid for again as soon as the other contexts of the name are summed up.
        return Err(JobError::Waits { why: Waiting::Dependency, delay: UNFINISHED });
    }
    let mut tx = ctx.checkpoint().await?;
    let gathered = Gathered::read(&mut tx, tools.config(), ctx.repository(), &concept).await?;
    tx.commit().await?;
    if gathered.slices.is_empty() {
        let mut tx = ctx.begin().await?;
        // Slices without words say nothing of the facts that are there: the last version stays.
        if !concept_summaries::is_named_covered(&mut tx, ctx.repository(), name, false).await? {
            concept_syntheses::remove(&mut tx, ctx.repository(), name).await?;
        }
        return tx.commit(Some(serde_json::json!({ "slices": 0 }))).await;
    }
    let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
    let synthesizing = Synthesizing {
        ctx: &ctx,
        tools: &tools,
        model: tools.ai().model(&tools.config().providers.synthesis.model)?,
        promptset,
        budget: Arc::new(RepositoryBudget::open(tools.ai(), ctx.repository()).await?),
        concept: &concept,
    };
    let inputs = gathered.hash(&concept, synthesizing.model.id(), &synthesizing.promptset);
    let mut tx = ctx.checkpoint().await?;
    let last = concept_syntheses::find(&mut tx, ctx.repository(), name, None).await?;
    tx.commit().await?;
    if let Some(last) = last.as_ref().filter(|last| last.inputs == inputs && !payload.again) {
        return unchanged(&ctx, name, last).await;
    }
    ctx.progress(Progress { stage: "synthesis".to_owned(), done: 0, total: Some(1), message: None });
    match synthesizing.write(gathered).await {
        Ok((new, dropped_citations)) => {
            let new = NewSynthesis { inputs, ..new };
            conclude(&ctx, name, last.as_ref(), new, dropped_citations).await
        }
        Err(unanswered) => give_up(&ctx, unanswered).await,
    }
}

/// Nothing is kept of facts and images that were deleted, in earlier versions either.
async fn mend(tx: &mut Tx, repository: RepositoryId, name: &str) -> Result<(), JobError> {
    let all = concept_syntheses::list_torn(tx, repository, name).await?;
    let any = !all.is_empty();
    for mut torn in all {
        let content = only_citing(&torn.content, |fact| torn.facts.contains(&fact));
        torn.content = only_showing(&content, |image| torn.images.iter().any(|(_, there)| *there == image));
        concept_syntheses::mend(tx, repository, name, &torn).await?;
    }
    if any {
        concept_syntheses::forget_answers(tx, repository, name).await?;
    }
    Ok(())
}

/// What it was made of is the same, or the model says the same of it.
async fn unchanged(ctx: &JobContext, name: &str, last: &Synthesis) -> Result<Finished, JobError> {
    let mut tx = ctx.begin().await?;
    concept_syntheses::note_unchanged(&mut tx, ctx.repository(), name, last.version).await?;
    tx.commit(Some(serde_json::json!({ "version": last.version, "unchanged": true }))).await
}

async fn conclude(
    ctx: &JobContext,
    name: &str,
    last: Option<&Synthesis>,
    new: NewSynthesis,
    dropped_citations: u32,
) -> Result<Finished, JobError> {
    if let Some(last) = last.filter(|last| last.content == new.content && last.inputs == new.inputs) {
        return unchanged(ctx, name, last).await;
    }
    let mut tx = ctx.begin().await?;
    if !concept_syntheses::hold_name(&mut tx, ctx.repository(), name).await? {
        // It was renamed or merged meanwhile, and its definitions were removed.
        return tx.commit(Some(serde_json::json!({ "gone": true }))).await;
    }
    if !concept_syntheses::hold_cited(&mut tx, ctx.repository(), &new.facts).await? {
        let why = "a fact was deleted or rejected while a definition was written from it";
        return Err(Error::Overloaded(why).into());
    }
    let version = concept_syntheses::insert(&mut tx, ctx.repository(), name, &new).await?;
    let output = serde_json::json!({
        "version": version,
        "slices": new.summaries.len(),
        "facts": new.facts.len(),
        "images": new.images.len(),
        "dropped_sentences": new.dropped,
        "dropped_citations": dropped_citations,
    });
    tx.commit(Some(output)).await
}

/// The last version stays.
async fn give_up(ctx: &JobContext, unanswered: Unanswered) -> Result<Finished, JobError> {
    let mut stopped = None;
    let unusable = Stopped::keep(&mut stopped, unanswered).map(|(_, message)| message);
    let why = match stopped {
        Some(stopped) => stopped.or_again(ctx, "synthesis", 0)?.1,
        None => unusable.unwrap_or_default(),
    };
    let tx = ctx.begin_discardable().await?;
    tx.discard(format!("no definition was written: {why}"), None).await
}

/// Who writes, and with what.
struct Synthesizing<'s> {
    ctx: &'s JobContext,
    tools: &'s Tools,
    model: Model,
    promptset: Promptset,
    budget: Arc<RepositoryBudget>,
    concept: &'s Concept,
}

impl Synthesizing<'_> {
    /// A new version, without the hash of what it was made of; with how many citations were dropped.
    async fn write(&self, mut gathered: Gathered) -> Result<(NewSynthesis, u32), Unanswered> {
        let settings = &self.tools.config().providers.synthesis;
        let most = usize::try_from(settings.max_images).unwrap_or(usize::MAX);
        let name = self.concept.canonical_name.as_str();
        if let Some(question) = gathered.picking(&self.promptset, name, most) {
            let picked = self.pick(&question, gathered.images.len(), most).await?;
            gathered.keep_images(&picked);
        }
        let parts = gathered.parts();
        let question = parts.question(&self.promptset, name, settings);
        let contexts = parts.contexts();
        let material = parts.material(name, &contexts);
        let key = question.key(self.model.id());
        let read = |answer: &str, attempt| read_synthesis(answer, &material, attempt);
        let written = self.ask(Operation::ConceptSynthesis, &question, read).await?;
        let new = NewSynthesis {
            name: self.concept.canonical_name.clone(),
            model: self.model.id().to_owned(),
            promptset_hash: self.promptset.hash(),
            question: key,
            inputs: key,
            dropped: i32::try_from(written.dropped_sentences).unwrap_or(i32::MAX),
            summaries: gathered.slices.iter().map(|slice| slice.slice).collect(),
            concepts: gathered.concepts(),
            facts: written.cited.iter().map(|at| material.facts[*at].id).collect(),
            images: written.images.iter().map(|at| gathered.image(*at)).collect(),
            content: written.content,
        };
        Ok((new, written.dropped_citations))
    }

    /// The places of the images that show the concept best.
    async fn pick(
        &self,
        question: &Question,
        candidates: usize,
        most: usize,
    ) -> Result<Vec<usize>, Unanswered> {
        let read = |answer: &str, _| read_picked(answer, candidates, most);
        match self.ask(Operation::ImagePicking, question, read).await {
            // A text without images is better than none.
            Err(Unanswered::Unusable { .. }) => Ok(Vec::new()),
            ended => ended,
        }
    }

    async fn ask<T>(
        &self,
        operation: Operation,
        question: &Question,
        read: impl Fn(&str, Attempt) -> Result<T, Misfit>,
    ) -> Result<T, Unanswered> {
        let Self { ctx, tools, model, budget, .. } = self;
        AboutConcept { ctx, tools, model, budget, concept: self.concept.id }
            .ask(operation, question, read)
            .await
    }
}
