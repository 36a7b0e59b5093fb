//! Finds the claims of reports that changed facts concern, and has their reports checked. Reads the facts that the database has noted
//! since the last run, leaves claims waiting, and answers marked that cite one of the facts.
//!
//! A claim is concerned by a fact that it was compared with, and by one that is near it now. Whether a fact is near depends on the two
//! alone, so no other claim would be judged otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use okt_check::is_near;
use okt_model::{
    AnnotateReport, CheckReports, EmbeddingSpace, Error, FactStatus, Payload as _, RepositoryId,
};
use okt_queue::{Finished, JobCommit, JobContext, JobError, active_sources};
use okt_store::outbox::{self, When};
use okt_store::report_facts::{self, ChangedFact};
use okt_store::report_sentences::{self, Claim};
use okt_store::{Tx, answers, reports};
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::Tools;
use crate::embed_facts::{current, or_wait};

/// Facts that are seen to at once, and claims that are compared with them at once.
const FACTS: i64 = 1_000;
const CLAIMS: i64 = 500;

/// Has reports compared with what has changed, if there are reports and something has.
pub(crate) async fn push(tx: &mut JobCommit, repository: RepositoryId) -> Result<(), JobError> {
    if report_facts::is_any(tx, repository).await? {
        tx.push(&CheckReports {}, When::default()).await?;
    }
    Ok(())
}

pub(crate) async fn run(_: CheckReports, ctx: JobContext, tools: Tools) -> Result<Finished, JobError> {
    // Two would see to the same facts.
    ctx.one_at_a_time().await?;
    let place = current(&tools).await?;
    let (mut facts, mut concerned, mut marked_answers) = (0, 0, 0);
    if let Some((space, _)) = &place {
        let mut tx = ctx.checkpoint().await?;
        let marked = report_sentences::mark_outdated(&mut tx, ctx.repository(), space.no).await?;
        reopen(&mut tx, ctx.repository(), &tools, &marked).await?;
        tx.commit().await?;
    }
    loop {
        let mut tx = ctx.read().await?;
        let (changed, entries) = report_facts::list(&mut tx, ctx.repository(), FACTS).await?;
        tx.commit().await?;
        if entries.is_empty() {
            break;
        }
        let near = near(&ctx, &tools, place.as_ref(), &changed).await?;
        let mut tx = ctx.checkpoint().await?;
        report_facts::hold(&mut tx, ctx.repository()).await?;
        let marked = mark(&mut tx, ctx.repository(), &tools, &changed, near).await?;
        let numbers: Vec<i64> = changed.iter().map(|fact| fact.no).collect();
        // Whoever is to be told that the evidence of an answer has changed (webhook `answer.evidence_changed`) is told here, in this
        // transaction.
        marked_answers += answers::mark_changed(&mut tx, ctx.repository(), &numbers).await?.len();
        report_facts::delete(&mut tx, ctx.repository(), &entries).await?;
        tx.commit().await?;
        facts += changed.len();
        concerned += marked;
    }
    let active =
        active_sources(ctx.databases(), ctx.database(), ctx.repository(), AnnotateReport::KIND).await?;
    let mut tx = ctx.begin().await?;
    let waiting = report_sentences::list_waiting_reports(&mut tx, ctx.repository()).await?;
    // A job that has not ended sees to what was marked, also when it is about to end: see `annotate_report::end`. One without an entry
    // has ended, and the queue does not know yet.
    let open = outbox::list_open(&mut tx, ctx.repository(), AnnotateReport::KIND).await?;
    let mut asked = 0;
    let waiting = if tools.config().providers.reports.enabled { waiting } else { Vec::new() };
    for report in reports::identify(&mut tx, ctx.repository(), &waiting).await? {
        let of = Some(report.uuid());
        if !(active.contains(&of) && open.contains(&of)) {
            tx.push(&AnnotateReport { report }, When::default()).await?;
            asked += 1;
        }
    }
    tx.commit(Some(serde_json::json!({ "facts": facts, "claims": concerned, "reports": asked, "answers": marked_answers }))).await
}

/// Marks the claims that are near a changed fact, or were compared with it; returns how many.
async fn mark(
    tx: &mut Tx,
    repository: RepositoryId,
    tools: &Tools,
    changed: &[ChangedFact],
    mut claims: BTreeSet<i64>,
) -> Result<usize, JobError> {
    let numbers: Vec<i64> = changed.iter().map(|fact| fact.no).collect();
    let compared = report_sentences::list_compared(tx, repository, &numbers).await?;
    claims.extend(compared);
    let claims: Vec<i64> = claims.into_iter().collect();
    let reports = report_sentences::mark(tx, repository, &claims).await?;
    reopen(tx, repository, tools, &reports).await?;
    Ok(claims.len())
}

/// Reports are not checked any more as a whole, where they are going to be.
async fn reopen(
    tx: &mut Tx,
    repository: RepositoryId,
    tools: &Tools,
    marked: &[i64],
) -> Result<(), JobError> {
    if tools.config().providers.reports.enabled {
        reports::reopen(tx, repository, marked).await?;
    }
    Ok(())
}

/// The claims that are near a fact which stands by itself.
async fn near(
    ctx: &JobContext,
    tools: &Tools,
    place: Option<&(EmbeddingSpace, Vectors)>,
    changed: &[ChangedFact],
) -> Result<BTreeSet<i64>, JobError> {
    let open = changed.iter().filter_map(|fact| fact.now.as_ref());
    let open = open.filter(|fact| matches!(fact.status, FactStatus::New | FactStatus::Stable));
    let texts: Vec<(&str, Option<&str>)> =
        open.clone().map(|fact| (fact.text.as_str(), fact.language.as_deref())).collect();
    if texts.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut vectors = Vec::new();
    if let Some((space, store)) = place {
        let (tenant, place) = (Tenant::new(ctx.repository(), ctx.database()), store.space(space));
        let ids: Vec<Uuid> = open.map(|fact| fact.id.uuid()).collect();
        let points = store.store().find(&tenant, &place, &ids).await.map_err(or_wait)?;
        vectors = points.into_iter().map(|point| point.vector).collect();
    }
    let facts = Arc::new((FactWords::new(&texts), vectors));
    let (mut near, mut after) = (BTreeSet::new(), 0);
    loop {
        let mut tx = ctx.read().await?;
        let space = place.map(|(space, _)| space.no);
        let claims = report_sentences::list_claims(&mut tx, ctx.repository(), space, after, CLAIMS).await?;
        tx.commit().await?;
        let Some(last) = claims.last() else { break };
        after = last.no;
        let (facts, tools) = (Arc::clone(&facts), tools.clone());
        // It keeps a core busy.
        let found = tokio::task::spawn_blocking(move || {
            let is_concerned =
                |claim: &Claim| facts.0.share_enough(&tools, claim) || is_close(&tools, claim, &facts.1);
            claims.into_iter().filter(is_concerned).map(|claim| claim.no).collect::<Vec<i64>>()
        });
        near.extend(found.await.map_err(Error::internal)?);
    }
    Ok(near)
}

/// The vectors of facts have length one.
fn is_close(tools: &Tools, claim: &Claim, vectors: &[Vec<f32>]) -> bool {
    let Some(own) = &claim.vector else { return false };
    let product = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
    let length = product(own, own).sqrt();
    // The store may count a little otherwise.
    vectors.iter().any(|vector| is_near(tools.config(), Some(product(own, vector) / length + 0.001), 0.0))
}

/// The words of some facts, and which facts have them; by the languages of the facts.
struct FactWords {
    by_language: BTreeMap<Option<String>, Lists>,
}

#[derive(Default)]
struct Lists {
    /// How many words each fact has.
    lengths: Vec<usize>,
    having: HashMap<String, Vec<usize>>,
}

impl FactWords {
    fn new(facts: &[(&str, Option<&str>)]) -> Self {
        let mut by_language: BTreeMap<Option<String>, Lists> = BTreeMap::new();
        for (text, language) in facts {
            let lists = by_language.entry(language.map(str::to_owned)).or_default();
            let words = okt_check::lexemes(text, *language);
            let at = lists.lengths.len();
            lists.lengths.push(words.len());
            for word in words {
                lists.having.entry(word).or_default().push(at);
            }
        }
        Self { by_language }
    }

    /// Whether a claim shares so many words with one of the facts that the two are near.
    fn share_enough(&self, tools: &Tools, claim: &Claim) -> bool {
        self.by_language.iter().any(|(language, lists)| {
            let words = okt_check::lexemes(&claim.text, language.as_deref());
            let mut shared: HashMap<usize, usize> = HashMap::new();
            for fact in words.iter().filter_map(|word| lists.having.get(word)).flatten() {
                *shared.entry(*fact).or_default() += 1;
            }
            shared.into_iter().any(|(fact, count)| {
                is_near(tools.config(), None, okt_check::share(count, words.len(), lists.lengths[fact]))
            })
        })
    }
}
