//! What it would cost to turn sources into facts, and to read these for concepts, before anybody pays.

use std::collections::BTreeSet;

use okt_auth::permissions::SourceWrite;
use okt_auth::{RepoAccess, RepoScope};
use okt_config::Chunking;
use okt_extract::concepts::{concept_question, reader};
use okt_extract::{Promptset, Question, Text, chunks, estimate, fact_questions, image_questions};
use okt_model::{
    CONCEPT_MODEL, ContentHash, Context, EXTRACTIVE_MODEL, Error, Money, Operation, Result, Source, SourceId,
    SourceImage, SourceText, Usage, UsageFilter, UsageGroup,
};
use okt_store::concept_readings::{self, ReadingState};
use okt_store::{
    ai_calls, contexts, model_answers, promptsets, repository_settings, source_images, source_texts, sources,
};

use crate::App;

/// Calls from which the ratio of tokens to characters is taken; with fewer it would be chance.
const HISTORY: i64 = 20;
const HISTORY_DAYS: u64 = 60;
/// What models write for each token that they read of a source: about a fact for a sentence, as long as it, and nearly as
/// much again for the form that it has to have.
const WRITTEN: f64 = 1.8;
/// What models write for each token of a fact when they name its concepts: two or three, each with a context and a form.
const NAMED: f64 = 1.5;
/// What looking at a picture takes, by and large.
const IMAGE_TOKENS: (f64, f64) = (1_000.0, 150.0);

/// What one source would cost.
#[derive(Clone, Debug)]
pub struct SourceEstimate {
    pub source: SourceId,
    pub chunks: u64,
    /// Of them those that were answered before, and cost nothing.
    pub answered: u64,
    pub calls: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: Money,
}

pub struct Estimate {
    /// Empty when facts are not looked for.
    pub model: String,
    /// Whether it rests on what this repository has seen of the model, or on a rule of thumb.
    pub from_history: bool,
    pub sources: Vec<SourceEstimate>,
}

/// Tokens for each character that is sent.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    tokens_in: f64,
    tokens_out: f64,
}

impl App {
    pub async fn estimate_sources(
        &self,
        scope: &RepoScope<SourceWrite>,
        ids: &[SourceId],
    ) -> Result<Estimate> {
        let settings = &self.config().providers.decomposition;
        let model = settings.fact_extraction.model.clone();
        let (promptset, with_images) = self.chosen(scope).await?;
        let history = self.history(scope, &model, Operation::FactExtraction).await?;
        let reading = self.concept_reading(scope, &promptset).await?;
        let mut found = Vec::new();
        // Naming one twice does not make it dearer.
        let ids: BTreeSet<SourceId> = ids.iter().copied().collect();
        for id in &ids {
            let (source, text, images) = self.for_estimate(scope, *id).await?;
            let images = if with_images { self.looks(&promptset, &source, &images) } else { Vec::new() };
            let (promptset, chunking, named) = (promptset.clone(), settings.chunking.clone(), model.clone());
            let unread = match &reading {
                Some(reading) => self.unread(scope, &source, &text, reading).await?,
                None => Vec::new(),
            };
            // A long text takes a while to cut, and others want to be answered.
            let asked =
                tokio::task::spawn_blocking(move || Asked::of(&promptset, &source, &text, &chunking, &named));
            let asked = asked.await.map_err(Error::internal)?;
            let mut estimate = self.priced(scope, *id, &model, asked, images, history).await?;
            if let Some(reading) = &reading {
                self.add_concepts(scope, &mut estimate, reading, &unread).await?;
            }
            found.push(estimate);
        }
        Ok(Estimate { model, from_history: history.is_some(), sources: found })
    }

    async fn priced(
        &self,
        scope: &RepoAccess,
        source: SourceId,
        model: &str,
        asked: Vec<Asked>,
        images: Vec<ContentHash>,
        history: Option<Ratio>,
    ) -> Result<SourceEstimate> {
        let repository = scope.repository();
        let chunks = count(asked.len());
        if model.is_empty() || model == EXTRACTIVE_MODEL {
            let (answered, calls, tokens_in, tokens_out) = (0, 0, 0, 0);
            return Ok(SourceEstimate {
                source,
                chunks,
                answered,
                calls,
                tokens_in,
                tokens_out,
                usd: Money::ZERO,
            });
        }
        let keys: Vec<ContentHash> =
            asked.iter().map(|asked| asked.key).chain(images.iter().copied()).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let known = model_answers::list(&mut tx, repository, &keys).await?;
        tx.commit().await?;
        let open: Vec<&Asked> = asked.iter().filter(|asked| !known.contains_key(&asked.key)).collect();
        let (reads, writes) = tokens(&open, history, WRITTEN);
        let images = images.iter().filter(|key| !known.contains_key(key)).count();
        let (calls, images) = (count(open.len()), count(images));
        let looks = small(images);
        let price = self.price_of(model, reads, writes);
        let viewer = &self.config().providers.decomposition.image_extraction.model;
        let looking = self.price_of(viewer, rounded(looks * IMAGE_TOKENS.0), rounded(looks * IMAGE_TOKENS.1));
        Ok(SourceEstimate {
            source,
            chunks,
            answered: chunks - calls,
            calls: calls + images,
            tokens_in: reads + rounded(looks * IMAGE_TOKENS.0),
            tokens_out: writes + rounded(looks * IMAGE_TOKENS.1),
            usd: price + looking,
        })
    }

    /// How facts would be read for concepts; `None` where no model is asked for that.
    async fn concept_reading(
        &self,
        scope: &RepoAccess,
        promptset: &Promptset,
    ) -> Result<Option<ConceptReading>> {
        let settings = &self.config().providers.decomposition.concept_extraction;
        if !settings.is_on() || settings.model == CONCEPT_MODEL {
            return Ok(None);
        }
        let history = self.history(scope, &settings.model, Operation::ConceptExtraction).await?;
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let mut contexts = contexts::list(&mut tx, scope.repository()).await?;
        tx.commit().await?;
        contexts.retain(|context| context.merging_into.is_none());
        Ok(Some(ConceptReading {
            model: settings.model.clone(),
            promptset: promptset.clone(),
            contexts,
            batch: usize::try_from(settings.fact_batch_size.max(1)).unwrap_or(1),
            history,
        }))
    }

    /// The facts of a source that nobody has read for concepts. Where it has none yet, its sentences stand for them.
    async fn unread(
        &self,
        scope: &RepoAccess,
        source: &Source,
        text: &SourceText,
        reading: &ConceptReading,
    ) -> Result<Vec<String>> {
        if source.fact_count == 0 {
            let sentences = Text::new(&text.text, &text.sentences);
            let all = (0..text.sentences.len()).map(|no| sentences.sentence(no).to_owned());
            return Ok(all.collect());
        }
        let reader = reader(&reading.model, reading.promptset.registry_hash());
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let facts = concept_readings::list(&mut tx, scope.repository(), source.id, reader).await?;
        tx.commit().await?;
        let unread = facts.into_iter().filter(|fact| fact.state != ReadingState::Settled);
        Ok(unread.map(|fact| fact.text).collect())
    }

    /// Adds what it would cost to read facts for concepts.
    async fn add_concepts(
        &self,
        scope: &RepoAccess,
        estimate: &mut SourceEstimate,
        reading: &ConceptReading,
        facts: &[String],
    ) -> Result<()> {
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        let asked: Vec<Asked> = facts
            .chunks(reading.batch)
            .map(|facts| {
                let question = concept_question(&reading.promptset, facts, &reading.contexts);
                Asked::new(&question, &reading.model, facts.iter().copied())
            })
            .collect();
        let keys: Vec<ContentHash> = asked.iter().map(|asked| asked.key).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let known = model_answers::list(&mut tx, scope.repository(), &keys).await?;
        tx.commit().await?;
        let open: Vec<&Asked> = asked.iter().filter(|asked| !known.contains_key(&asked.key)).collect();
        let (reads, writes) = tokens(&open, reading.history, NAMED);
        estimate.calls += count(open.len());
        estimate.tokens_in += reads;
        estimate.tokens_out += writes;
        estimate.usd += self.price_of(&reading.model, reads, writes);
        Ok(())
    }

    /// A model that is not in the catalogue costs nothing, since it can't be asked.
    pub(crate) fn price_of(&self, model: &str, tokens_in: u64, tokens_out: u64) -> Money {
        let found = self.config().providers.ai.models.iter().find(|known| known.id == model);
        found.map_or(Money::ZERO, |model| model.price(tokens_in, tokens_out))
    }

    pub(crate) async fn chosen(&self, scope: &RepoAccess) -> Result<(Promptset, bool)> {
        let mut conn = self.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, scope.repository()).await?.unwrap_or_default();
        let used = promptsets::find_used(&mut conn, scope.repository()).await?;
        let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
        let images = &self.config().providers.decomposition.image_extraction;
        Ok((promptset, images.is_on(settings.stages.image_extraction)))
    }

    /// How many tokens the model made of a character lately, in this repository.
    pub(crate) async fn history(
        &self,
        scope: &RepoAccess,
        model: &str,
        operation: Operation,
    ) -> Result<Option<Ratio>> {
        let mut tx = self.databases().begin_system().await?;
        let to = ai_calls::today(&mut tx).await?;
        let from = to.checked_sub_days(chrono::Days::new(HISTORY_DAYS)).unwrap_or(to);
        let filter = UsageFilter { group: UsageGroup::Model, from, to };
        let found =
            ai_calls::list_sums(&mut tx, Some(scope.repository()), filter, Some(operation), 100).await?;
        tx.commit().await?;
        let known = found.into_iter().find(|usage| usage.key == model && usage.calls >= HISTORY);
        Ok(known.and_then(|usage| ratio(&usage)))
    }

    async fn for_estimate(
        &self,
        scope: &RepoAccess,
        id: SourceId,
    ) -> Result<(Source, SourceText, Vec<SourceImage>)> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let missing =
            || Error::invalid("source_ids", format!("no source of this repository has the id {id}"));
        let source = sources::find(&mut tx, repository, id).await?.ok_or_else(missing)?;
        let text = source_texts::find(&mut tx, repository, id).await?;
        let images = source_images::list(&mut tx, repository, id).await?;
        tx.commit().await?;
        let text =
            text.ok_or(Error::Conflict("a source has no text yet, so its cost cannot be estimated"))?;
        Ok((source, text, images))
    }

    /// What the questions about images are called.
    fn looks(&self, promptset: &Promptset, source: &Source, images: &[SourceImage]) -> Vec<ContentHash> {
        let settings = &self.config().providers.decomposition.image_extraction;
        let most = usize::try_from(settings.max_images_per_source).unwrap_or(usize::MAX);
        let asked = image_questions(promptset, source.title.as_deref(), images, most);
        asked.iter().map(|(_, question)| question.key(&settings.model)).collect()
    }
}

/// How facts would be read for concepts.
struct ConceptReading {
    model: String,
    promptset: Promptset,
    contexts: Vec<Context>,
    batch: usize,
    history: Option<Ratio>,
}

/// A call that would be made.
pub(crate) struct Asked {
    pub(crate) key: ContentHash,
    characters: f64,
    tokens: f64,
    /// Of the source's own text.
    text_tokens: f64,
}

impl Asked {
    fn of(
        promptset: &Promptset,
        source: &Source,
        text: &SourceText,
        chunking: &Chunking,
        model: &str,
    ) -> Vec<Self> {
        let title = source.title.as_deref();
        let sentences = Text::new(&text.text, &text.sentences);
        let cut = chunks(&sentences, chunking.chunk_size, chunking.chunk_overlap);
        let questions = fact_questions(promptset, title, &sentences, &cut);
        let asked = cut.iter().zip(questions).map(|(chunk, question)| {
            Self::new(&question, model, chunk.sentences.clone().map(|no| sentences.sentence(no)))
        });
        asked.collect()
    }

    /// A question, and the texts that it is about.
    pub(crate) fn new<'t>(question: &Question, model: &str, texts: impl Iterator<Item = &'t str>) -> Self {
        Self {
            key: question.key(model),
            characters: float(question.system.chars().count() + question.user.chars().count()),
            tokens: estimated(&question.system) + estimated(&question.user),
            text_tokens: small(texts.map(estimate).sum()),
        }
    }

    /// Where a model writes so many tokens for each that it reads of the text.
    fn rule_of_thumb(&self, written: f64) -> Ratio {
        let characters = self.characters.max(1.0);
        Ratio { tokens_in: self.tokens / characters, tokens_out: written * self.text_tokens / characters }
    }
}

/// What calls would read and write.
pub(crate) fn tokens(calls: &[&Asked], history: Option<Ratio>, written: f64) -> (u64, u64) {
    let (mut reads, mut writes) = (0.0, 0.0);
    for asked in calls {
        let ratio = history.unwrap_or(asked.rule_of_thumb(written));
        reads += asked.characters * ratio.tokens_in;
        writes += asked.characters * ratio.tokens_out;
    }
    (rounded(reads), rounded(writes))
}

fn ratio(usage: &Usage) -> Option<Ratio> {
    let number = |number: i64| u32::try_from(number).map_or(f64::from(u32::MAX), f64::from);
    // Both sides by the same measure, so that large numbers stay numbers.
    let scale = (usage.characters / i64::from(u32::MAX)).max(0) + 1;
    let of = |tokens: i64| number(tokens / scale) / number(usage.characters / scale).max(1.0);
    (usage.characters > 0).then(|| Ratio { tokens_in: of(usage.tokens_in), tokens_out: of(usage.tokens_out) })
}

fn estimated(text: &str) -> f64 {
    small(estimate(text))
}

fn float(number: usize) -> f64 {
    small(count(number))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn small(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of estimates, and never negative"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}
