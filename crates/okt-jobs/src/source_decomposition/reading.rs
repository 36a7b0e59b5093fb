//! Asks a model about all parts of a source, several at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use okt_extract::{
    Extracted, Question, Text, chunks, fact_questions, image_questions, read_facts, read_image_facts,
};
use okt_model::{ContentHash, ModelCall, Operation, Progress, Result, SourceFile, SourceId, SourceImage};
use okt_providers::ai::{self, Model};
use okt_queue::{JobContext, JobError};
use okt_store::model_answers::{self, ModelAnswer};

use super::findings::{Findings, Part};
use super::{Work, cost};
use crate::Tools;
use crate::asking::{Asker, Purse, Unanswered};
use crate::ledger;

/// Parts in a row after which a model is taken to be away.
const SILENCE: u32 = 8;

/// What is asked about one part.
struct Asked<'w> {
    part: Part,
    question: Question,
    chunk: Option<okt_extract::Chunk>,
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
    questioner: Asker<'w>,
    parts: Vec<Asked<'w>>,
    pictures: Vec<Asked<'w>>,
    answered: HashMap<ContentHash, ModelAnswer>,
    /// Nothing more is asked.
    stopped: AtomicBool,
    /// Parts in a row that were not answered.
    silence: AtomicU32,
    done: AtomicU64,
}

impl<'w> Reading<'w> {
    pub(super) async fn new(
        ctx: &'w JobContext,
        tools: &'w Tools,
        work: &'w Work,
    ) -> Result<Reading<'w>, JobError> {
        let settings = &tools.config().providers.decomposition;
        let text = Text::new(&work.text.text, &work.text.sentences);
        let model = tools.model(&settings.fact_extraction.model)?;
        let title = work.source.title.as_deref();
        let chunking = &settings.chunking;
        let cut = chunks(&text, chunking.chunk_size, chunking.chunk_overlap);
        let questions: Vec<Question> = fact_questions(&work.promptset, title, &text, &cut).collect();
        let parts = cut.into_iter().zip(questions).map(|(chunk, question)| {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let (first, last) = (count(chunk.sentences.start), count(chunk.sentences.end.saturating_sub(1)));
            Asked {
                part: Part::Chunk { no: count(chunk.no), first, last },
                question,
                chunk: Some(chunk),
                image: None,
            }
        });
        let parts: Vec<Asked> = parts.collect();
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
        let viewer = if pictures.is_empty() { None } else { Some(tools.model(&images.model)?) };
        let mut keys: Vec<ContentHash> = parts.iter().map(|asked| asked.question.key(model.id())).collect();
        if let Some(viewer) = &viewer {
            keys.extend(pictures.iter().map(|asked| asked.question.key(viewer.id())));
        }
        let answered = look_up(ctx, work.source.id, &keys).await?;
        // Now that all that was paid is in the books; without a limit nobody asks for it.
        let spent = match work.source.max_cost_usd {
            Some(_) => cost(ctx, &work.source).await?.usd,
            None => 0.0,
        };
        let purse = Purse::new(work.source.max_cost_usd, spent);
        Ok(Self {
            ctx,
            tools,
            work,
            text,
            model,
            viewer,
            questioner: Asker::new(ctx, tools, work.source.id, purse, Arc::clone(&work.budget)),
            parts,
            pictures,
            answered,
            stopped: AtomicBool::new(false),
            silence: AtomicU32::new(0),
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
        self.questioner.written().await?;
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
        let answers: Vec<BoxFuture<'_, Ended>> =
            asked.iter().map(|asked| self.unless_stopped(asked).boxed()).collect();
        stream::iter(answers).buffer_unordered(concurrency).collect().await
    }

    async fn unless_stopped(&self, asked: &Asked<'w>) -> Ended {
        if self.stopped.load(Ordering::Relaxed) {
            return (asked.part, None);
        }
        let ended = self.one(asked).await;
        let silence = if matches!(ended, Err(Unanswered::Later(_))) {
            self.silence.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            self.silence.store(0, Ordering::Relaxed);
            0
        };
        // Nobody there: with all its attempts each further part would take as long to say so.
        if silence >= SILENCE || matches!(ended, Err(Unanswered::Pause { .. } | Unanswered::Hopeless { .. }))
        {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.tell_progress(1);
        (asked.part, Some(ended))
    }

    async fn one(&self, asked: &Asked<'w>) -> Result<Extracted, Unanswered> {
        let title = self.work.source.title.as_deref();
        let read = |answer: &str| match &asked.chunk {
            Some(chunk) => read_facts(answer, title, &self.text, chunk),
            None => read_image_facts(answer),
        };
        let (model, operation) = match &self.viewer {
            Some(viewer) if asked.image.is_some() => (viewer, Operation::ImageFactExtraction),
            _ => (&self.model, Operation::FactExtraction),
        };
        let known = self.answered.get(&asked.question.key(model.id()));
        if let Some(Ok(known)) = known.map(|known| read(&known.answer)) {
            return Ok(known);
        }
        let picture = match asked.image {
            Some(image) => Some(self.picture(image).await?),
            None => None,
        };
        self.questioner.ask(model, operation, &asked.question, picture, read).await
    }

    async fn picture(&self, image: &SourceImage) -> Result<ai::Part, Unanswered> {
        let missing = || Unanswered::Useless {
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

/// What was answered before.
async fn look_up(
    ctx: &JobContext,
    source: SourceId,
    keys: &[ContentHash],
) -> Result<HashMap<ContentHash, ModelAnswer>, JobError> {
    let mut tx = ctx.look().await?;
    let answered = model_answers::list(&mut tx, ctx.repository(), keys).await?;
    tx.commit().await?;
    // The process that asked may have died between the two books.
    let ours = answered.values().map(|answer| &answer.call).filter(|call| call.source == Some(source));
    ledger::tell_again(ctx.databases(), &ours.collect::<Vec<&ModelCall>>()).await?;
    Ok(answered)
}
