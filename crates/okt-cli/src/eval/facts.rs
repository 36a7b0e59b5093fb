//! `okt eval facts DIR`.
//!
//! The folder has texts: `*.md`, with the title in their front matter, and `*.txt`, which have none. Each is read, cut into
//! chunks, asked about, asked about again in halves, and checked as the job does it, with the settings in force: only that no
//! database is needed, nothing is kept, and no budget is asked. Whether a fact stands alone is told by the rules by which
//! sentences are chosen without a model, which are not a reader.

mod tally;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use okt_ai::{Dialogue, Turn, Unanswered};
use okt_config::Loaded;
use okt_extract::extractive::{self, Alone};
use okt_extract::{
    Chunk, Coarse, Extracted, Misfit, Phase, Promptset, SPLITS, Text, chunks, fact_questions, read_facts,
    weigh_facts,
};
use okt_parse::worker::Head;
use okt_parse::{Document, Hint, Limits, ParseError};
use okt_providers::GuardedClient;
use okt_providers::ai::{Model, Models};
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::tally::Tally;
use super::FactsArgs;

/// A text, and what its facts are asked of.
struct Source {
    name: String,
    document: Document,
}

pub fn measure(args: &FactsArgs, loaded: &Loaded) -> anyhow::Result<String> {
    let sources = sources(&args.folder)?;
    let id = &loaded.config.providers.decomposition.fact_extraction.model;
    if id.is_empty() {
        bail!("providers.decomposition.fact_extraction.model is empty: name the model to be measured");
    }
    let promptset = promptset(args.prompt.as_deref())?;
    let (tallies, hash) = if id == extractive::MODEL {
        if args.prompt.is_some() {
            bail!("{id} reads no prompt; name a model in providers.decomposition.fact_extraction.model");
        }
        (sources.iter().map(selected).collect(), extractive::promptset_hash())
    } else {
        let runtime = tokio::runtime::Runtime::new().context("can't start the runtime")?;
        (runtime.block_on(asked(&sources, loaded, id, &promptset))?, promptset.registry_hash())
    };
    let mut all = Tally::default();
    let mut out = String::new();
    for (source, tally) in sources.iter().zip(tallies) {
        if args.list {
            out += &tally.list(&source.name);
        }
        all.add(tally);
    }
    Ok(out + &all.table(id, &hash.to_string()))
}

fn sources(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("can't read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "md" || end == "txt"))
        .collect();
    files.sort();
    if files.is_empty() {
        bail!("{} has no texts: name a folder with *.md or *.txt", folder.display());
    }
    files.iter().map(|path| source(path)).collect()
}

fn source(path: &Path) -> anyhow::Result<Source> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let hint = Hint { file_name: Some(name.clone()), ..Hint::default() };
    let head = Head { hint, limits: Limits { images: 0, ..Limits::default() } };
    let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
    let document = okt_parse::parse(engine, &bytes, &head, &mut |_| {})
        .with_context(|| format!("can't read {}", path.display()))?;
    Ok(Source { name, document })
}

fn promptset(prompt: Option<&Path>) -> anyhow::Result<Promptset> {
    let Some(path) = prompt else { return Ok(Promptset::builtin()) };
    let text = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    Ok(Promptset::builtin().with([(Phase::FactExtraction, text.trim_end().to_owned())].into()))
}

impl Source {
    fn offsets(&self) -> Vec<(i32, i32)> {
        let place = |place: u32| i32::try_from(place).unwrap_or(i32::MAX);
        self.document.sentences.iter().map(|&(start, end)| (place(start), place(end))).collect()
    }
}

/// Without a model.
fn selected(source: &Source) -> Tally {
    let (offsets, language) = (source.offsets(), source.document.language.as_deref());
    let text = Text::new(&source.document.text, &offsets);
    let extracted = extractive::extract(&text, language);
    let mut tally = Tally::of(&text);
    tally.state(extracted.facts.len(), &[]);
    tally.pass_over(&extracted.dropped);
    tally.take(extracted, &Alone::of(&text, language));
    tally
}

async fn asked(
    sources: &[Source],
    loaded: &Loaded,
    id: &str,
    promptset: &Promptset,
) -> anyhow::Result<Vec<Tally>> {
    let config = &loaded.config;
    let client = GuardedClient::of(&config.providers)?;
    let model = Models::new(config, &client)
        .find(id)
        .with_context(|| format!("{id} is not in providers.ai.models"))?;
    let settings = &config.providers.decomposition;
    let asking = Asking { model, promptset, pace: Pace::default() };
    let (size, overlap) = (settings.chunking.chunk_size, settings.chunking.chunk_overlap);
    let read = sources.iter().map(|source| asking.source(source, size, overlap));
    let at_once = usize::try_from(settings.fact_extraction.concurrency.max(1)).unwrap_or(1);
    stream::iter(read).buffered(at_once).try_collect().await
}

struct Asking<'a> {
    model: Model,
    promptset: &'a Promptset,
    pace: Pace,
}

/// A part of a text that is asked about.
struct Part<'a> {
    title: Option<&'a str>,
    text: &'a Text<'a>,
    chunk: Chunk,
    splits: u32,
}

impl Asking<'_> {
    async fn source(&self, source: &Source, size: u32, overlap: u32) -> anyhow::Result<Tally> {
        let Source { document, .. } = source;
        let offsets = source.offsets();
        let text = Text::new(&document.text, &offsets);
        let alone = Alone::of(&text, document.language.as_deref());
        let mut tally = Tally::of(&text);
        let title = document.title.as_deref();
        let part = |chunk, splits| Part { title, text: &text, chunk, splits };
        let mut parts: Vec<Part> =
            chunks(&text, size, overlap).into_iter().rev().map(|chunk| part(chunk, SPLITS)).collect();
        tally.chunks = parts.len();
        while let Some(asked) = parts.pop() {
            let halves = if asked.splits > 0 { asked.chunk.halves(&text) } else { None };
            match (self.part(&asked, halves.is_some(), &mut tally).await?, halves) {
                (Ok(extracted), _) => tally.take(extracted, &alone),
                (Err(Misfit::COARSE), Some(halves)) => {
                    parts.extend(halves.map(|half| part(half, asked.splits - 1)).into_iter().rev());
                }
                (Err(_), _) => tally.failed += 1,
            }
        }
        Ok(tally)
    }

    /// What is believed of the answer about a part, or the code of why there is none.
    async fn part(
        &self,
        part: &Part<'_>,
        divisible: bool,
        tally: &mut Tally,
    ) -> anyhow::Result<Result<Extracted, &'static str>> {
        let Part { title, text, chunk, .. } = part;
        let coarse = if divisible { Coarse::Refused } else { Coarse::Taken };
        let question = fact_questions(self.promptset, *title, text, std::slice::from_ref(chunk)).next();
        let question = question.context("a chunk gives a question")?;
        let mut dialogue = Dialogue::new(&question, None);
        loop {
            let reply = match self.model.chat(dialogue.chat(), || self.pace.turn(&self.model)).await {
                Ok(reply) => reply,
                Err(error) => match Unanswered::from(error) {
                    Unanswered::Unusable { code, .. } => return Ok(Err(code)),
                    Unanswered::Permanent { message, .. } => bail!("{message}"),
                    Unanswered::Wait { .. } => bail!("{} limits the rate of requests", self.model.id()),
                    Unanswered::Retryable(error) => return Err(error.into()),
                },
            };
            tally.call(reply.usage, self.model.price(reply.usage));
            let (ended, turn) =
                dialogue.take(&reply, |answer| read_facts(answer, *title, text, chunk, coarse));
            let answer = ended.keep.as_ref().unwrap_or(&reply.text);
            if let Ok(weighed) = weigh_facts(answer, *title, text, chunk) {
                tally.state(weighed.stated, &weighed.extracted.dropped);
            }
            match turn {
                Turn::Done(extracted) => return Ok(Ok(extracted)),
                Turn::Again { code } => tally.refuse(code),
                Turn::Unusable { code, .. } => {
                    tally.refuse(code);
                    return Ok(Err(code));
                }
            }
        }
    }
}

/// Keeps `rate_limit_rpm` in this process.
#[derive(Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    async fn turn(&self, model: &Model) -> okt_model::Result<()> {
        let Some(gap) = Duration::from_mins(1).checked_div(model.rate_limit_rpm()) else { return Ok(()) };
        let mut last = self.0.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + gap).await;
        }
        *last = Some(Instant::now());
        Ok(())
    }
}
