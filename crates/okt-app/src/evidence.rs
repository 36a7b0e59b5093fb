//! What the facts say of a claim or a text, without keeping anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use okt_ai::{Billing, Embedder, SubjectBudget, Vectors as Embedded};
use okt_auth::permissions::{FactRead, ReportWrite};
use okt_auth::{RepoAccess, RepoScope};
use okt_check::{Candidates, Cut, Judge, Judging, Neighbour, Pair, Searching, Sentence};
use okt_model::{
    CallId, Cost, EmbeddingSpace, Error, FactId, MarkKind, Operation, Posture, Result, SentenceState,
    SpaceKind, Subject, SubjectKind,
};
use okt_providers::ai::Usage;
use okt_store::report_sentences::NewSentence;
use okt_store::search_hits::{self, SourceHit};
use okt_store::source_marks;
use tokio::time::{Instant, timeout_at};

use crate::App;

/// As many sentences are checked at once.
const MOST_CLAIMS: usize = 200;
/// And so many headings, rows of tables and other sentences that claim nothing.
const MOST_OTHERS: usize = 2_000;
const LONGEST_CLAIM: usize = 4_000;
/// Somebody waits: vectors that are not there by then are done without, and so are words and a model.
const FOR_VECTORS: Duration = Duration::from_secs(5);
const FOR_WORDS: Duration = Duration::from_secs(4);
const FOR_A_MODEL: Duration = Duration::from_secs(12);
const TOO_SLOW: &str = "the facts could not be searched in time";

/// What was found.
pub struct Evidence {
    pub sentences: Vec<CheckedSentence>,
    /// Why not everything was compared that could be.
    pub degraded: Option<&'static str>,
}

/// A sentence with the facts near it.
pub struct CheckedSentence {
    pub sentence: NewSentence,
    /// `None` if it claims nothing.
    pub state: Option<SentenceState>,
    pub facts: Vec<EvidenceFact>,
}

/// A fact that is near a sentence.
pub struct EvidenceFact {
    pub id: FactId,
    pub text: String,
    pub posture: Posture,
    pub confidence: f32,
    /// The model that judged.
    pub judged_by: String,
    pub score: f32,
    /// Its sources were all retracted: it counts for nothing.
    pub retracted: bool,
    /// Its sources are all superseded.
    pub superseded: bool,
    /// The first of its sources.
    pub sources: Vec<SourceHit>,
}

impl App {
    /// What the facts say of one claim.
    pub async fn find_evidence(&self, scope: &RepoScope<FactRead>, claim: &str) -> Result<Evidence> {
        let claim = claim.trim();
        let length = claim.chars().count();
        if length == 0 || length > LONGEST_CLAIM {
            return Err(Error::invalid("claim", "must have 1 to 4000 characters"));
        }
        let end = i32::try_from(length).unwrap_or(i32::MAX);
        let text = claim.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = NewSentence { start: 0, end, text, is_claim: true };
        let language = okt_parse::language_of(claim, None);
        self.look(scope, Cut { language, sentences: vec![sentence] }).await
    }

    /// What the facts say of each sentence of a text.
    pub async fn check_text(&self, scope: &RepoScope<FactRead>, text: &str) -> Result<Evidence> {
        let cut = self.cut("text", text).await?;
        let claims = cut.sentences.iter().filter(|sentence| sentence.is_claim).count();
        if claims > MOST_CLAIMS {
            return Err(Error::invalid("text", "has more than 200 sentences to check; make a report of it"));
        }
        if cut.sentences.len() - claims > MOST_OTHERS {
            return Err(Error::invalid(
                "text",
                "has more than 2,000 headings, rows and other sentences that claim nothing",
            ));
        }
        self.look(scope, cut).await
    }

    async fn look(&self, scope: &RepoScope<FactRead>, cut: Cut) -> Result<Evidence> {
        let model_deadline = Instant::now() + FOR_A_MODEL;
        let may_pay = scope.also::<ReportWrite>().is_ok();
        let language = cut.language.as_deref();
        let claims: Vec<&NewSentence> = cut.sentences.iter().filter(|sentence| sentence.is_claim).collect();
        let texts: Vec<&str> = claims.iter().map(|sentence| sentence.text.as_str()).collect();
        let (space, vectors, degraded) = match self.sentence_vectors(scope, may_pay, &texts).await {
            Ok((space, vectors)) => (Some(space), vectors, None),
            Err(why) => (None, Vec::new(), Some(why)),
        };
        let sentences: Vec<Sentence<'_>> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| Sentence { text, vector: vectors.get(at).map(Vec::as_slice) })
            .collect();
        let (near, degraded) = self.neighbours(scope, space.as_ref(), language, &sentences, degraded).await?;
        let (said, away) = self.judged(scope, may_pay, language, &texts, &near, model_deadline).await?;
        let (marked, sources) = self.sources_of(scope, &near).await?;
        let mut found = near.into_iter().zip(said).map(|(near, said)| {
            let facts = near.into_iter().zip(said).filter_map(|(fact, said)| {
                Some(EvidenceFact {
                    id: fact.id,
                    posture: said.posture?,
                    confidence: said.confidence,
                    judged_by: said.by,
                    score: fact.score,
                    retracted: marked.get(&fact.no) == Some(&MarkKind::Retracted),
                    superseded: marked.get(&fact.no) == Some(&MarkKind::Superseded),
                    sources: fact.sources.iter().filter_map(|no| sources.get(no)).cloned().collect(),
                    text: fact.text,
                })
            });
            facts.collect::<Vec<EvidenceFact>>()
        });
        let sentences = cut.sentences.into_iter().map(|sentence| {
            let facts = if sentence.is_claim { found.next().unwrap_or_default() } else { Vec::new() };
            let any = |posture| facts.iter().any(|fact| fact.posture == posture && !fact.retracted);
            let state = SentenceState::of(any(Posture::Supports), any(Posture::Contradicts));
            CheckedSentence { state: sentence.is_claim.then_some(state), sentence, facts }
        });
        // Whoever asked for a model is told first that it did not judge.
        Ok(Evidence { sentences: sentences.collect(), degraded: away.or(degraded) })
    }

    /// By vectors and words, each as far as it was there in time.
    async fn neighbours(
        &self,
        scope: &RepoAccess,
        space: Option<&EmbeddingSpace>,
        language: Option<&str>,
        sentences: &[Sentence<'_>],
        mut degraded: Option<&'static str>,
    ) -> Result<(Vec<Vec<Neighbour>>, Option<&'static str>)> {
        let searching = Searching {
            config: self.config(),
            databases: self.databases(),
            repository: scope.repository(),
            database: scope.database(),
            vectors: self.vectors().zip(space),
            language,
            turns: Some(self.turns_to_rank()),
        };
        let mut found = match tokio::time::timeout(FOR_VECTORS, searching.by_vectors(sentences)).await {
            Ok(Ok(found)) => found,
            ended => {
                if let Ok(Err(error)) = ended {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the store of vectors did not answer for a claim");
                }
                degraded = Some("vectors_away");
                vec![Candidates::new(); sentences.len()]
            }
        };
        match tokio::time::timeout(FOR_WORDS, searching.by_words(sentences, &mut found)).await {
            Ok(ended) => ended?,
            Err(_) if found.iter().all(BTreeMap::is_empty) => return Err(Error::Overloaded(TOO_SLOW)),
            Err(_) => degraded = Some("words_slow"),
        }
        Ok((searching.near(sentences, found).await?, degraded))
    }

    /// How the facts stand to the sentences, and why the model that is to say so did not. A model that costs money is asked for
    /// those who may write reports.
    async fn judged(
        &self,
        scope: &RepoAccess,
        may_pay: bool,
        language: Option<&str>,
        texts: &[&str],
        near: &[Vec<Neighbour>],
        deadline: Instant,
    ) -> Result<(Vec<Vec<okt_check::Said>>, Option<&'static str>)> {
        let pairs: Vec<Pair<'_>> = texts
            .iter()
            .zip(near)
            .flat_map(|(sentence, near)| {
                near.iter().map(move |fact| Pair {
                    sentence,
                    fact: &fact.text,
                    cosine: fact.cosine,
                    language: fact.language.as_deref().or(language),
                })
            })
            .collect();
        let judge =
            Judge::new(self.ai(), self.config(), self.databases(), scope.repository(), may_pay).await?;
        let billing = Billing {
            repository: scope.repository(),
            database: scope.database().to_owned(),
            subject: Some(Subject::new(SubjectKind::Question, CallId::mint().uuid())),
            job: None,
        };
        let on_cost = |_: Cost| ();
        let judging = Judging {
            ai: self.ai(),
            config: self.config(),
            billing: &billing,
            on_cost: &on_cost,
            budget: None,
            deadline: Some(deadline),
            turns: Some(self.turns_to_rank()),
        };
        let mut said = judge.judge(&judging, &pairs).await?.said;
        // What a model has not said in time is said by rules.
        let open: Vec<usize> = (0..said.len()).filter(|at| said[*at].is_none()).collect();
        let away = (!open.is_empty()).then_some("model_away");
        if !open.is_empty() {
            let left: Vec<Pair<'_>> = open.iter().map(|at| pairs[*at]).collect();
            let by_rule = Judge::Rule.judge(&judging, &left).await?;
            for (at, one) in open.into_iter().zip(by_rule.said) {
                said[at] = one;
            }
        }
        let mut said = said.into_iter().flatten();
        Ok((near.iter().map(|near| said.by_ref().take(near.len()).collect()).collect(), away))
    }

    /// Which facts rest on retracted or superseded sources alone, and the first sources of all.
    async fn sources_of(
        &self,
        scope: &RepoAccess,
        near: &[Vec<Neighbour>],
    ) -> Result<(HashMap<i64, MarkKind>, HashMap<i64, SourceHit>)> {
        let facts: BTreeSet<i64> = near.iter().flatten().map(|fact| fact.no).collect();
        let facts: Vec<i64> = facts.into_iter().collect();
        let sources: BTreeSet<i64> = near.iter().flatten().flat_map(|fact| &fact.sources).copied().collect();
        let sources: Vec<i64> = sources.into_iter().collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let marked = source_marks::list_marked_facts(&mut tx, scope.repository(), &facts).await?;
        let sources = search_hits::get_sources(&mut tx, scope.repository(), &sources).await?;
        tx.commit().await?;
        Ok((marked, sources))
    }

    /// The vectors of sentences, by the model that the facts were embedded by; why there are none, where there are none.
    async fn sentence_vectors(
        &self,
        scope: &RepoAccess,
        may_pay: bool,
        texts: &[&str],
    ) -> Result<(EmbeddingSpace, Vec<Vec<f32>>), &'static str> {
        self.vectors().ok_or("no_vectors")?;
        let away = |error: Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "a claim could not be embedded");
            "vectors_away"
        };
        let space = self.ai().current_space(SpaceKind::Facts).await.map_err(away)?.ok_or("no_vectors")?;
        let usage = Usage { tokens_in: 1_000_000, tokens_out: 0, estimated: true };
        if !may_pay && !self.ai().model(&space.model).map_err(away)?.price(usage).is_zero() {
            return Err("needs_report_write");
        }
        let billing = Billing {
            repository: scope.repository(),
            database: scope.database().to_owned(),
            subject: None,
            job: None,
        };
        let budget = SubjectBudget::unlimited();
        let embedder = Embedder::new(self.ai(), billing, budget, Operation::SentenceEmbedding, &space)
            .map_err(away)?
            .within(FOR_VECTORS / 2);
        let batch = usize::try_from(self.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
        let deadline = Instant::now() + FOR_VECTORS;
        let mut vectors = Vec::new();
        for some in texts.chunks(batch) {
            let some: Vec<String> = some.iter().map(|text| okt_check::embedded(text).to_owned()).collect();
            match timeout_at(deadline, embedder.embed(some)).await {
                Ok(Ok(Embedded::Embedded(more, _))) => vectors.extend(more),
                Ok(Ok(Embedded::OverMaxCost | Embedded::OverBudget(_))) => return Err("budget"),
                Ok(Err(_)) | Err(_) => return Err("vectors_away"),
            }
        }
        Ok((space, vectors))
    }
}
