//! Holds the claims of a report against the facts. Reads claims that wait, leaves them checked.
//!
//! Claims are checked a page at a time, and each page is kept before the next one is begun. A pair of a sentence and a fact is judged
//! once: what was said of it before is used again, and what a person has said is never replaced. A claim for which a model has not
//! answered goes on waiting, as it stood before.

mod changes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_ai::{BUDGET_RETRY, Billing, Embedder, SubjectBudget, waiting_for_budget};
use okt_check::{Judge, Judging, Neighbour, Pair, Searching, Sentence};
use okt_model::{
    AnnotateReport, Cost, EmbeddingSpace, Error, Operation, Progress, Report, ReportStatus, SentenceState,
    Subject, SubjectKind, Waiting, WebhookEvent,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::report_annotations::{self, Judged, NewAnnotation, PERSON};
use okt_store::report_sentences::{self, Checked, Claim};
use okt_store::{model_answers, report_changes, report_facts, report_words, reports, webhooks};
use okt_vectors::Vectors;

use self::changes::changes;
use crate::Tools;
use crate::asking::Stopped;
use crate::embed_facts::{Filled, current, embed, or_wait, still};

/// Claims that are checked at once, and sentences whose words are written at once.
const PAGE: i64 = 64;
const INDEXED: i64 = 500;

pub(crate) async fn run(
    payload: AnnotateReport,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    // Two would ask about the same claims.
    ctx.one_at_a_time().await?;
    let mut tx = ctx.checkpoint().await?;
    let Some(report) = reports::find(&mut tx, ctx.repository(), payload.report).await? else {
        tx.commit().await?;
        return ctx.begin().await?.commit(None).await;
    };
    let is_on = tools.config().providers.reports.enabled;
    let total = report_sentences::count_checked(&mut tx, ctx.repository(), report.no).await?.waiting;
    if is_on && report_sentences::is_waiting(&mut tx, ctx.repository(), report.no).await? {
        reports::mark(&mut tx, ctx.repository(), report.no, ReportStatus::Annotating, None).await?;
    }
    tx.commit().await?;
    if !is_on {
        return ctx.begin().await?.commit(None).await;
    }
    index(&ctx, &report).await?;
    let place = current(&tools).await?;
    if let Some((space, vectors)) = &place {
        vectors.store().prepare(&vectors.space(space), false).await.map_err(or_wait)?;
    }
    let subject = Some(Subject::new(SubjectKind::Report, report.id.uuid()));
    let billing = Billing {
        repository: ctx.repository(),
        database: ctx.database().to_owned(),
        subject,
        job: Some(ctx.id()),
    };
    let judge = Judge::new(tools.ai(), tools.config(), ctx.databases(), ctx.repository(), true).await?;
    let annotating =
        Annotating { ctx: &ctx, tools: &tools, report: &report, place: place.as_ref(), billing, judge };
    let (mut done, mut after) = (0, 0);
    let mut stopped = None;
    loop {
        let mut tx = ctx.read().await?;
        let space = place.as_ref().map(|(space, _)| space.no);
        let claims =
            report_sentences::list_waiting(&mut tx, ctx.repository(), report.no, space, after, PAGE).await?;
        tx.commit().await?;
        let Some(last) = claims.last() else { break };
        after = last.no;
        let ended = annotating.check(claims).await?;
        done += ended.checked;
        if ended.stopped.is_some() {
            stopped = ended.stopped;
            break;
        }
        // More may have come since it was counted.
        let total = u64::try_from(total).ok().map(|total| total.max(done));
        ctx.progress(Progress { stage: "sentences".to_owned(), done, total, message: None });
    }
    annotating.end(stopped, done).await
}

/// Has the sentences of a report found by their words.
async fn index(ctx: &JobContext, report: &Report) -> Result<(), JobError> {
    loop {
        let mut tx = ctx.checkpoint().await?;
        if reports::hold(&mut tx, ctx.repository(), report.id).await?.is_none() {
            return Ok(());
        }
        let sentences =
            report_sentences::list_unindexed(&mut tx, ctx.repository(), report.no, INDEXED).await?;
        if sentences.is_empty() {
            return Ok(());
        }
        let words: Vec<(i64, Vec<String>)> = sentences
            .into_iter()
            .map(|(no, text)| {
                (no, okt_check::lexemes(&text, report.language.as_deref()).into_iter().collect())
            })
            .collect();
        let of: Vec<(i64, &[String])> = words.iter().map(|(no, words)| (*no, words.as_slice())).collect();
        report_words::insert(&mut tx, ctx.repository(), report.no, &of).await?;
        let numbers: Vec<i64> = words.iter().map(|(no, _)| *no).collect();
        report_sentences::mark_indexed(&mut tx, ctx.repository(), &numbers).await?;
        tx.commit().await?;
    }
}

struct Annotating<'a> {
    ctx: &'a JobContext,
    tools: &'a Tools,
    report: &'a Report,
    place: Option<&'a (EmbeddingSpace, Vectors)>,
    billing: Billing,
    judge: Judge,
}

/// What came of a page.
struct Page {
    checked: u64,
    stopped: Option<Stopped>,
}

impl Annotating<'_> {
    async fn check(&self, mut claims: Vec<Claim>) -> Result<Page, JobError> {
        self.embed(&mut claims).await?;
        let numbers: Vec<i64> = claims.iter().map(|claim| claim.no).collect();
        let near = self.near(&claims).await?;
        let mut tx = self.ctx.read().await?;
        let before = report_annotations::list_judged(&mut tx, self.ctx.repository(), &numbers).await?;
        tx.commit().await?;
        let (said, stopped) = self.judge(&claims, &near, before).await?;
        let (mut checked, mut annotations) = (Vec::new(), Vec::new());
        for (claim, near) in claims.iter().zip(&near) {
            let judged: Vec<(&Neighbour, &Judged)> =
                near.iter().filter_map(|fact| Some((fact, said.get(&(claim.no, fact.no))?))).collect();
            // One that a model has not answered for stays as it was, and waits. What was answered is known when it is asked again.
            let is_near = judged.len() == near.len();
            if is_near {
                checked.push((claim, near.as_slice()));
            }
            annotations.extend(judged.into_iter().map(|(fact, judged)| NewAnnotation {
                sentence: claim.no,
                fact: fact.no,
                score: fact.score,
                judged: judged.clone(),
                is_near,
            }));
        }
        let checked = self.keep(checked, annotations).await?;
        Ok(Page { checked: u64::try_from(checked).unwrap_or(u64::MAX), stopped })
    }

    /// The facts that are near each claim, the nearest first.
    async fn near(&self, claims: &[Claim]) -> Result<Vec<Vec<Neighbour>>, JobError> {
        let searching = Searching {
            config: self.tools.config(),
            databases: self.ctx.databases(),
            repository: self.ctx.repository(),
            database: self.ctx.database(),
            vectors: self.place.map(|(space, vectors)| (vectors, space)),
            language: self.report.language.as_deref(),
            turns: None,
        };
        let sentences: Vec<Sentence<'_>> = claims
            .iter()
            .map(|claim| Sentence { text: &claim.text, vector: claim.vector.as_deref() })
            .collect();
        searching.find(&sentences).await.map_err(or_wait)
    }

    /// What is said of each claim and each fact near it: what was said before, or else what is said now.
    async fn judge(
        &self,
        claims: &[Claim],
        near: &[Vec<Neighbour>],
        before: HashMap<(i64, i64), Judged>,
    ) -> Result<(HashMap<(i64, i64), Judged>, Option<Stopped>), JobError> {
        let known = |judged: &Judged| judged.judged_by == PERSON || self.judge.is_own(&judged.judged_by);
        let mut said: HashMap<(i64, i64), Judged> =
            before.into_iter().filter(|(_, judged)| known(judged)).collect();
        let open: Vec<(&Claim, &Neighbour)> = claims
            .iter()
            .zip(near)
            .flat_map(|(claim, near)| near.iter().map(move |fact| (claim, fact)))
            .filter(|(claim, fact)| !said.contains_key(&(claim.no, fact.no)))
            .collect();
        let pairs: Vec<Pair<'_>> = open
            .iter()
            .map(|(claim, fact)| Pair {
                sentence: &claim.text,
                fact: &fact.text,
                cosine: fact.cosine,
                language: fact.language.as_deref().or(self.report.language.as_deref()),
            })
            .collect();
        let on_cost = |cost: Cost| self.ctx.spent(cost);
        let judging = Judging {
            ai: self.tools.ai(),
            config: self.tools.config(),
            billing: &self.billing,
            on_cost: &on_cost,
            budget: None,
            deadline: None,
            turns: None,
        };
        let judged = self.judge.judge(&judging, &pairs).await?;
        for ((claim, fact), one) in open.iter().zip(judged.said) {
            if let Some(one) = one {
                let one = Judged { posture: one.posture, confidence: one.confidence, judged_by: one.by };
                said.insert((claim.no, fact.no), one);
            }
        }
        let mut stopped = None;
        for unanswered in judged.unanswered {
            Stopped::keep(&mut stopped, unanswered);
        }
        Ok((said, stopped))
    }

    /// Keeps what was said, and how the claims stand now; returns how many are checked. A model takes minutes. A claim near a fact that
    /// went meanwhile goes on waiting: nobody knew yet that the two had been compared, so nobody has marked the claim.
    async fn keep(
        &self,
        checked: Vec<(&Claim, &[Neighbour])>,
        mut annotations: Vec<NewAnnotation>,
    ) -> Result<usize, JobError> {
        let repository = self.ctx.repository();
        let mut tx = self.ctx.checkpoint().await?;
        report_facts::share(&mut tx, repository).await?;
        // Whoever writes the report anew waits, or is waited for.
        if reports::hold(&mut tx, repository, self.report.id).await?.is_none() {
            return Ok(0);
        }
        let sentences: Vec<i64> = checked.iter().map(|(claim, _)| claim.no).collect();
        report_annotations::hold(&mut tx, repository, &sentences).await?;
        let facts: BTreeSet<i64> = annotations.iter().map(|one| one.fact).collect();
        let facts: Vec<i64> = facts.into_iter().collect();
        let gone = report_facts::list_gone(&mut tx, repository, &facts).await?;
        let claims: Vec<&Claim> = checked
            .into_iter()
            .filter(|(_, near)| !near.iter().any(|fact| gone.contains(&fact.no)))
            .map(|(claim, _)| claim)
            .collect();
        let numbers: Vec<i64> = claims.iter().map(|claim| claim.no).collect();
        for one in &mut annotations {
            one.is_near &= numbers.contains(&one.sentence);
        }
        let before = report_annotations::list_counted(&mut tx, repository, &numbers).await?;
        report_annotations::replace(&mut tx, repository, self.report.no, &numbers, &annotations).await?;
        let counted = report_annotations::list_counted(&mut tx, repository, &numbers).await?;
        let standing =
            report_annotations::find_standing(&mut tx, repository, self.report.no, Some(&numbers)).await?;
        let states: BTreeMap<i64, SentenceState> = numbers
            .iter()
            .map(|no| {
                let (supported, contradicted) =
                    (standing.supported.contains(no), standing.contradicted.contains(no));
                (*no, SentenceState::of(supported, contradicted))
            })
            .collect();
        let checked: Vec<Checked> = claims
            .iter()
            .map(|claim| Checked { no: claim.no, waiting: claim.waiting, state: states[&claim.no] })
            .collect();
        report_sentences::settle(&mut tx, repository, &checked).await?;
        let changes = changes(&claims, &states, &before, &counted);
        report_changes::insert(&mut tx, repository, self.report.no, &changes).await?;
        tx.commit().await?;
        Ok(claims.len())
    }

    /// Gives claims the vectors that they lack. One that has no direction is kept, so that nobody pays for it again, and compared with
    /// nothing.
    async fn embed(&self, claims: &mut [Claim]) -> Result<(), JobError> {
        let Some((space, _)) = self.place else { return Ok(()) };
        let mut bare: Vec<&mut Claim> = claims.iter_mut().filter(|claim| claim.vector.is_none()).collect();
        let budget = SubjectBudget::unlimited();
        let operation = Operation::SentenceEmbedding;
        let embedder = Embedder::new(self.tools.ai(), self.billing.clone(), budget, operation, space)?;
        let batch = usize::try_from(self.tools.config().providers.ai.embed_batch_size.max(1)).unwrap_or(1);
        for some in bare.chunks_mut(batch) {
            still(self.tools, space).await?;
            let texts = some.iter().map(|claim| okt_check::embedded(&claim.text).to_owned()).collect();
            let numbers: Vec<i64> = some.iter().map(|claim| claim.no).collect();
            let (databases, database) = (self.ctx.databases().clone(), self.ctx.database().to_owned());
            let (repository, report, space) = (self.ctx.repository(), self.report.id, space.no);
            let keep = move |vectors: Vec<Vec<f32>>, cost: Cost| async move {
                let kept: Vec<(i64, &[f32])> =
                    numbers.into_iter().zip(vectors.iter().map(Vec::as_slice)).collect();
                let mut tx = databases.begin(&database, repository).await?;
                reports::hold(&mut tx, repository, report).await?;
                report_sentences::keep_vectors(&mut tx, repository, space, &kept).await?;
                tx.commit().await?;
                Ok::<_, Error>((vectors, cost))
            };
            let (vectors, cost) = match embed(&embedder, texts, keep).await? {
                Filled::For(made) => made,
                Filled::OverMaxCost => {
                    return Err(Error::internal("a report has no limit of its own").into());
                }
                Filled::OverBudget(budget) => {
                    self.ctx.progress(waiting_for_budget("sentences", 0, budget));
                    return Err(JobError::Waits { why: Waiting::Budget, delay: BUDGET_RETRY });
                }
            };
            self.ctx.spent(cost);
            for (claim, vector) in some.iter_mut().zip(vectors) {
                claim.vector = Some(vector);
            }
        }
        Ok(())
    }

    /// Ends the job: everything is checked, or it says why not.
    async fn end(&self, stopped: Option<Stopped>, done: u64) -> Result<Finished, JobError> {
        let repository = self.ctx.repository();
        let failure = stopped.map(|stopped| stopped.or_again(self.ctx, "sentences", done)).transpose()?;
        let mut tx = self.ctx.begin().await?;
        // Whoever marks claims waits, or is waited for: either this job sees them, or he sees that it has ended.
        reports::hold(&mut tx, repository, self.report.id).await?;
        let Some(report) = reports::find(&mut tx, repository, self.report.id).await? else {
            return tx.commit(None).await;
        };
        let still_waiting = report_sentences::is_waiting(&mut tx, repository, report.no).await?;
        let status = match (&failure, still_waiting) {
            (Some(_), _) => ReportStatus::Failed,
            (None, true) => {
                // It came meanwhile.
                tx.push(&AnnotateReport { report: report.id }, When::default()).await?;
                ReportStatus::Annotating
            }
            (None, false) => ReportStatus::Annotated,
        };
        if status == ReportStatus::Annotated {
            // What was said of each pair is kept beside it, so nobody asks the same again.
            let subject = Subject::new(SubjectKind::Report, self.report.id.uuid());
            model_answers::forget(&mut tx, repository, subject).await?;
        }
        let told = failure.as_ref().map(|(code, message)| (*code, message.as_str()));
        reports::mark(&mut tx, repository, report.no, status, told).await?;
        let changed = reports::tell(&mut tx, repository, report.no).await?;
        let counts = report_annotations::count(&mut tx, repository, &report).await?;
        if changed > 0 {
            let data = serde_json::json!({ "report_id": report.id, "changed": changed, "counts": counts });
            let (event, page) = (WebhookEvent::ReportHealthChanged, format!("reports/{}", report.id));
            webhooks::announce(&mut tx, repository, event, &page, &data).await?;
        }
        let output = serde_json::json!({
            "checked": done, "changed": changed, "counts": counts, "judged_by": self.judge.name(),
            "failure": failure.map(|(code, _)| code),
        });
        tx.commit(Some(output)).await
    }
}
