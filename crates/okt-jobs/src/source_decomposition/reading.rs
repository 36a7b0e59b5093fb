//! Asks a model about all parts of a source, several at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use okt_ai::{Asker, SubjectBudget, Unanswered};
use okt_extract::{
    Chunk, Coarse, Extracted, Misfit, Question, SPLITS, Text, chunks, fact_questions, image_questions,
    read_facts, read_image_facts,
};
use okt_model::{ContentHash, Cost, Operation, Progress, Result, SourceFile, SourceImage};
use okt_providers::ai::{self, Model};
use okt_queue::{JobContext, JobError};
use okt_store::model_answers::ModelAnswer;

use super::Work;
use super::findings::{Findings, Part};
use crate::Tools;
use crate::asking::Patience;
use crate::tools::billing;

/// What is asked about one part.
struct Asked<'w> {
    part: Part,
    question: Question,
    chunk: Option<Chunk>,
    image: Option<&'w SourceImage>,
}

/// What came of a part; nothing where it was not asked about because of what another one met.
type Ended = (Part, Option<Result<Extracted, Unanswered>>);

pub(super) struct Reading<'w> {
    ctx: &'w JobContext,
    tools: &'w Tools,
    work: &'w Work,
    text: Text<'w>,
    model: Model,
    /// Who looks at the images.
    viewer: Option<Model>,
    asker: Asker<'w>,
    parts: Vec<Asked<'w>>,
    pictures: Vec<Asked<'w>>,
    answered: HashMap<ContentHash, ModelAnswer>,
    patience: Patience,
    done: AtomicU64,
}

impl Asked<'_> {
    fn of(chunk: Chunk, question: Question) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (first, last) = (count(chunk.sentences.start), count(chunk.sentences.end.saturating_sub(1)));
        Self {
            part: Part::Chunk { no: count(chunk.no), first, last },
            question,
            chunk: Some(chunk),
            image: None,
        }
    }
}

impl<'w> Reading<'w> {
    pub(super) async fn new(
        ctx: &'w JobContext,
        tools: &'w Tools,
        work: &'w Work,
        on_cost: &'w (dyn Fn(Cost) + Send + Sync),
    ) -> Result<Reading<'w>, JobError> {
        let settings = &tools.config().providers.decomposition;
        let text = Text::new(&work.text.text, &work.text.sentences);
        let model = tools.ai().model(&settings.fact_extraction.model)?;
        let title = work.source.title.as_deref();
        let chunking = &settings.chunking;
        let cut = chunks(&text, chunking.chunk_size, chunking.chunk_overlap);
        let questions: Vec<Question> = fact_questions(&work.promptset, title, &text, &cut).collect();
        let parts: Vec<Asked> =
            cut.into_iter().zip(questions).map(|(chunk, question)| Asked::of(chunk, question)).collect();
        let images = &settings.image_extraction;
        let most = usize::try_from(images.max_images_per_source).unwrap_or(usize::MAX);
        let pictures = image_questions(&work.promptset, title, &work.images, most).into_iter();
        let pictures: Vec<Asked> = pictures
            .map(|(image, question)| Asked {
                part: Part::Image(image.id),
                question,
                chunk: None,
                image: Some(image),
            })
            .collect();
        let viewer = if pictures.is_empty() { None } else { Some(tools.ai().model(&images.model)?) };
        let mut keys: Vec<ContentHash> = parts.iter().map(|asked| asked.question.key(model.id())).collect();
        if let Some(viewer) = &viewer {
            keys.extend(pictures.iter().map(|asked| asked.question.key(viewer.id())));
        }
        let billing = billing(ctx, Some(work.source.id));
        let answered = tools.ai().answered(&billing, &keys).await?;
        // Now that all that was paid is recorded.
        let budget = SubjectBudget::open(tools.ai(), &billing, work.source.max_cost_usd).await?;
        Ok(Self {
            ctx,
            tools,
            work,
            text,
            model,
            viewer,
            asker: Asker::new(tools.ai(), billing, budget, Arc::clone(&work.budget), on_cost),
            parts,
            pictures,
            answered,
            patience: Patience::default(),
            done: AtomicU64::new(0),
        })
    }

    pub(super) async fn run(&self) -> Result<Findings, JobError> {
        let settings = &self.tools.config().providers.decomposition;
        let concurrency = |number: u32| usize::try_from(number.max(1)).unwrap_or(1);
        self.tell_progress(0);
        let texts = self.all(&self.parts, concurrency(settings.fact_extraction.concurrency));
        let images = self.all(&self.pictures, concurrency(settings.image_extraction.concurrency));
        let (texts, images) = futures_util::join!(texts, images);
        self.asker.stored().await?;
        let mut findings = Findings::default();
        for (part, ended) in texts {
            findings.take(part, self.model.id(), ended);
        }
        let viewer = self.viewer.as_ref().map_or("", Model::id);
        for (part, ended) in images {
            findings.take(part, viewer, ended);
        }
        Ok(findings)
    }

    /// Those that are out are waited for, whatever the others met: they are paid for.
    async fn all(&self, asked: &[Asked<'w>], concurrency: usize) -> Vec<Ended> {
        let answers: Vec<BoxFuture<'_, Vec<Ended>>> =
            asked.iter().map(|asked| self.whole(asked).boxed()).collect();
        let ended: Vec<Vec<Ended>> = stream::iter(answers).buffer_unordered(concurrency).collect().await;
        ended.into_iter().flatten().collect()
    }

    async fn whole(&self, asked: &Asked<'w>) -> Vec<Ended> {
        let known = self.answered.get(&asked.question.key(self.asked_of(asked).0.id()));
        let ended = self.unless_stopped(asked, known, SPLITS).await;
        self.tell_progress(1);
        ended
    }

    /// What came of a part, or of its halves where the answer to it was too coarse.
    async fn unless_stopped(
        &self,
        asked: &Asked<'w>,
        known: Option<&ModelAnswer>,
        splits: u32,
    ) -> Vec<Ended> {
        if self.patience.is_over() {
            return vec![(asked.part, None)];
        }
        let halves = asked.chunk.as_ref().filter(|_| splits > 0).and_then(|chunk| chunk.halves(&self.text));
        let ended = self.one(asked, known, halves.is_some()).await;
        if matches!(ended, Err(Unanswered::Unusable { code: Misfit::COARSE, .. }))
            && let Some(halves) = halves
        {
            return match self.halves(halves, splits - 1).await {
                Ok(ended) => ended,
                Err(error) => vec![(asked.part, Some(Err(error.into())))],
            };
        }
        self.patience.hear(&ended);
        vec![(asked.part, Some(ended))]
    }

    async fn halves(&self, halves: [Chunk; 2], splits: u32) -> Result<Vec<Ended>> {
        let title = self.work.source.title.as_deref();
        let questions: Vec<Question> =
            fact_questions(&self.work.promptset, title, &self.text, &halves).collect();
        let keys: Vec<ContentHash> = questions.iter().map(|question| question.key(self.model.id())).collect();
        let billing = billing(self.ctx, Some(self.work.source.id));
        let answered = self.tools.ai().answered(&billing, &keys).await?;
        let mut ended = Vec::new();
        for ((half, question), key) in halves.into_iter().zip(questions).zip(&keys) {
            let asked = Asked::of(half, question);
            ended.extend(Box::pin(self.unless_stopped(&asked, answered.get(key), splits)).await);
        }
        Ok(ended)
    }

    /// Who is asked, and for what.
    fn asked_of(&self, asked: &Asked<'w>) -> (&Model, Operation) {
        match &self.viewer {
            Some(viewer) if asked.image.is_some() => (viewer, Operation::ImageFactExtraction),
            _ => (&self.model, Operation::FactExtraction),
        }
    }

    /// `divisible`: an answer that is too coarse is of no use, because there are smaller pieces to ask about.
    async fn one(
        &self,
        asked: &Asked<'w>,
        known: Option<&ModelAnswer>,
        divisible: bool,
    ) -> Result<Extracted, Unanswered> {
        let title = self.work.source.title.as_deref();
        let coarse = if divisible { Coarse::Refused } else { Coarse::Taken };
        let read = |answer: &str| match &asked.chunk {
            Some(chunk) => read_facts(answer, title, &self.text, chunk, coarse),
            None => read_image_facts(answer),
        };
        let (model, operation) = self.asked_of(asked);
        match known.map(|known| read(&known.answer)) {
            Some(Ok(known)) => return Ok(known),
            // An earlier run has asked.
            Some(Err(misfit @ Misfit::Coarse(_))) if divisible => {
                return Err(Unanswered::Unusable { code: misfit.code(), message: misfit.to_string() });
            }
            _ => {}
        }
        let picture = match asked.image {
            Some(image) => Some(self.picture(image).await?),
            None => None,
        };
        self.asker.ask(model, operation, &asked.question, picture, read).await
    }

    async fn picture(&self, image: &SourceImage) -> Result<ai::Part, Unanswered> {
        let missing = || Unanswered::Unusable {
            code: "image_missing",
            message: "the image was stored and is not there any more".to_owned(),
        };
        let blob = image.blob.ok_or_else(missing)?;
        let file =
            SourceFile { repository: self.ctx.repository(), source: self.work.source.id, hash: blob.hash };
        let mut reading = self.tools.blobs().read(file, None).await?.ok_or_else(missing)?;
        let mut bytes = BytesMut::new();
        while let Some(piece) = reading.bytes.try_next().await.map_err(Unanswered::from)? {
            bytes.extend_from_slice(&piece);
        }
        let content_type = image.content_type.clone().unwrap_or_else(|| "image/png".to_owned());
        Ok(ai::Part::Image { content_type, bytes: bytes.freeze() })
    }

    fn tell_progress(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let total = u64::try_from(self.parts.len() + self.pictures.len()).ok();
        self.ctx.progress(Progress { stage: "facts".to_owned(), done, total, message: None });
    }
}
