//! Investigations: sources that belong to one question, what these say, how far they are and what they have cost.

use okt_auth::permissions::{
    InvestigationDelete, InvestigationRead, InvestigationUpdate, InvestigationWrite, SourceWrite,
};
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{
    Error, Fact, Investigation, InvestigationConcept, InvestigationId, InvestigationProgress, Locator,
    Result, Source, SourceFilter, SourceId, checked_name,
};
use okt_queue::ActiveJobs;
use okt_store::investigations::{self, InvestigationConceptPlace, InvestigationFactPlace, Linked};
use okt_store::{Connection, Tx, counters, fact_groups, sources};
use uuid::Uuid;

use crate::concepts::OfFacts;
use crate::references::ImportOutcome;
use crate::sources::SourceRequest;
use crate::{App, Origin};

const TITLE_LIMIT: usize = 300;
const TOPIC_LIMIT: usize = 4_000;
const COUNTER: &str = "investigations";
/// Links of its sources to facts that are looked at, to count its facts and for its concepts.
const MOST_LINKS_READ: i64 = 10_000;
/// Sources whose facts are looked at together, and how often for one page.
const SOURCES_AT_ONCE: i64 = 10;
const MOST_ROUNDS: usize = 20;

/// An investigation with where it stands.
pub struct SeenInvestigation {
    pub investigation: Investigation,
    /// Facts that say the same are one.
    pub fact_count: i64,
    /// False when there were more than are counted.
    pub is_counted_whole: bool,
    pub progress: InvestigationProgress,
    pub jobs: ActiveJobs,
}

/// What became of one candidate.
pub struct AddedCandidate {
    pub outcome: ImportOutcome,
    /// Whether the investigation did not have it before.
    pub linked: bool,
}

impl App {
    pub async fn create_investigation(
        &self,
        scope: &RepoScope<InvestigationWrite>,
        title: &str,
        topic: Option<&str>,
    ) -> Result<SeenInvestigation> {
        let (title, topic) = (checked_title(title)?, topic.map(checked_topic).transpose()?);
        let topic = topic.filter(|topic| !topic.is_empty());
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let id = InvestigationId::mint();
        let investigation = investigations::insert(&mut tx, repository, id, &title, topic.as_deref()).await?;
        counters::add(&mut tx, repository, COUNTER, 1).await?;
        tx.commit().await?;
        Ok(SeenInvestigation {
            investigation,
            fact_count: 0,
            is_counted_whole: true,
            progress: InvestigationProgress::default(),
            jobs: ActiveJobs::default(),
        })
    }

    /// The newest first.
    pub async fn list_investigations(
        &self,
        scope: &RepoScope<InvestigationRead>,
        before: Option<InvestigationId>,
        limit: i64,
    ) -> Result<Vec<Investigation>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let found = investigations::list(&mut tx, repository, before, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn find_investigation(
        &self,
        scope: &RepoScope<InvestigationRead>,
        id: InvestigationId,
    ) -> Result<SeenInvestigation> {
        self.load_investigation(scope, id).await
    }

    /// What is left out stays as it is; an empty topic is none.
    pub async fn update_investigation(
        &self,
        scope: &RepoScope<InvestigationUpdate>,
        id: InvestigationId,
        title: Option<&str>,
        topic: Option<&str>,
    ) -> Result<SeenInvestigation> {
        let (title, topic) = (title.map(checked_title).transpose()?, topic.map(checked_topic).transpose()?);
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if !investigations::update(&mut tx, repository, id, title.as_deref(), topic.as_deref()).await? {
            return Err(MISSING);
        }
        tx.commit().await?;
        self.load_investigation(scope, id).await
    }

    /// Removes an investigation; its sources stay.
    pub async fn delete_investigation(
        &self,
        origin: &Origin,
        scope: &RepoScope<InvestigationDelete>,
        id: InvestigationId,
    ) -> Result<()> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if !investigations::delete(&mut tx, repository, id).await? {
            return Err(MISSING);
        }
        counters::add(&mut tx, repository, COUNTER, -1).await?;
        self.commit_recorded(tx, origin, scope, "investigation.deleted", &id.to_string()).await
    }

    async fn load_investigation(&self, scope: &RepoAccess, id: InvestigationId) -> Result<SeenInvestigation> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let investigation = get(&mut tx, scope, id).await?;
        let no = investigation.no;
        let progress = investigations::find_progress(&mut tx, repository, no).await?;
        let counted = investigations::count_facts(&mut tx, repository, no, MOST_LINKS_READ + 1).await?;
        let subjects = investigations::list_sources(&mut tx, repository, id).await?;
        tx.commit().await?;
        let subjects: Vec<Uuid> = subjects.into_iter().map(|(_, source)| source.uuid()).collect();
        let mut jobs = okt_queue::count_active_about(self.databases(), repository, &subjects).await?;
        jobs.waiting += progress.unsent_jobs;
        let (fact_count, links) = counted;
        let is_counted_whole = links <= MOST_LINKS_READ;
        Ok(SeenInvestigation { investigation, fact_count, is_counted_whole, progress, jobs })
    }

    /// The sources of an investigation, the newest first.
    pub async fn list_investigation_sources(
        &self,
        scope: &RepoScope<InvestigationRead>,
        id: InvestigationId,
        before: Option<SourceId>,
        limit: i64,
    ) -> Result<Vec<Source>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        get(&mut tx, scope, id).await?;
        let among = investigations::list_sources(&mut tx, repository, id).await?;
        let among = Some(among.into_iter().map(|(no, _)| no).collect());
        let filter = SourceFilter { among, ..SourceFilter::default() };
        let found = sources::list(&mut tx, repository, &filter, false, before, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Adds a source of the repository; says whether the investigation did not have it before.
    pub async fn add_investigation_source(
        &self,
        scope: &RepoScope<InvestigationUpdate>,
        id: InvestigationId,
        source: SourceId,
    ) -> Result<bool> {
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        get(&mut tx, scope, id).await?;
        let linked = match investigations::link(&mut tx, scope.repository(), id, source).await? {
            Linked::NoSource => {
                return Err(Error::invalid("source_id", "the repository has no source of this id"));
            }
            linked => is_new(linked)?,
        };
        tx.commit().await?;
        Ok(linked)
    }

    /// Makes sources of candidates that the repository does not have, and adds all of them, each as if it were alone: what was
    /// added stays when a later one can't be.
    pub async fn add_candidates(
        &self,
        scope: &RepoScope<InvestigationUpdate>,
        id: InvestigationId,
        candidates: Vec<Result<Locator>>,
    ) -> Result<Vec<AddedCandidate>> {
        let adding = scope.also::<SourceWrite>()?;
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        get(&mut tx, scope, id).await?;
        tx.commit().await?;
        let mut added = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let request = candidate.map(|locator| SourceRequest {
                locator,
                max_cost_usd: None,
                investigation: Some(id),
            });
            let accepted = match request {
                Ok(request) => self.add_source(&adding, &request).await,
                Err(invalid) => Err(invalid),
            };
            added.push(match accepted {
                Ok(accepted) => {
                    let ids = (accepted.source, accepted.job);
                    let outcome = if accepted.existing {
                        ImportOutcome::Existing(ids.0, ids.1)
                    } else {
                        ImportOutcome::Added(ids.0, ids.1)
                    };
                    AddedCandidate { outcome, linked: accepted.linked }
                }
                Err(error @ Error::Invalid(_)) => refused(ImportOutcome::Invalid(error.to_string())),
                // Nothing was written, and others may be there already.
                Err(error @ (Error::QuotaExceeded { .. } | Error::Conflict(_))) => {
                    refused(ImportOutcome::Skipped(error.to_string()))
                }
                Err(error) => return Err(error),
            });
        }
        Ok(added)
    }

    /// Takes a source out of an investigation; it stays in the repository.
    pub async fn remove_investigation_source(
        &self,
        scope: &RepoScope<InvestigationUpdate>,
        id: InvestigationId,
        source: SourceId,
    ) -> Result<()> {
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        get(&mut tx, scope, id).await?;
        if !investigations::unlink(&mut tx, scope.repository(), id, source).await? {
            return Err(Error::NotFound("source in the investigation"));
        }
        Ok(tx.commit().await?)
    }

    /// The facts of its sources, each once and with its place: the newest sources first. If the page was not filled because many
    /// sources have none, the place to go on after.
    pub async fn list_investigation_facts(
        &self,
        scope: &RepoScope<InvestigationRead>,
        id: InvestigationId,
        after: Option<InvestigationFactPlace>,
        limit: i64,
    ) -> Result<(Vec<(InvestigationFactPlace, Fact)>, Option<InvestigationFactPlace>)> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let no = get(&mut tx, scope, id).await?.no;
        let mut after = after.unwrap_or((i64::MAX, i64::MAX));
        let (mut places, mut found) = (Vec::new(), Vec::new());
        let mut left = None;
        for round in 1..=MOST_ROUNDS {
            let next =
                investigations::list_next_sources(&mut tx, repository, no, after.0, SOURCES_AT_ONCE).await?;
            let missing = limit - i64::try_from(found.len()).map_err(Error::internal)?;
            let more = investigations::list_facts(&mut tx, repository, no, &next, after, missing).await?;
            for (place, fact) in more {
                places.push(place);
                found.push(fact);
            }
            let is_last = i64::try_from(next.len()).is_ok_and(|count| count < SOURCES_AT_ONCE);
            let Some(last) = next.last().filter(|_| !is_last) else { break };
            if i64::try_from(found.len()).is_ok_and(|count| count >= limit) {
                break;
            }
            // Before the first of the next source.
            after = (last - 1, i64::MAX);
            if round == MOST_ROUNDS {
                left = Some(after);
            }
        }
        fact_groups::describe(&mut tx, repository, &mut found).await?;
        tx.commit().await?;
        Ok((places.into_iter().zip(found).collect(), left))
    }

    /// The concepts that its facts speak of, those that the most of them speak of first.
    pub async fn list_investigation_concepts(
        &self,
        scope: &RepoScope<InvestigationRead>,
        id: InvestigationId,
        after: Option<InvestigationConceptPlace>,
        limit: i64,
    ) -> Result<OfFacts<InvestigationConcept>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let no = get(&mut tx, scope, id).await?.no;
        let rows =
            investigations::list_concepts(&mut tx, repository, no, MOST_LINKS_READ, after, limit).await?;
        let counted = investigations::count_facts(&mut tx, repository, no, MOST_LINKS_READ + 1).await?;
        tx.commit().await?;
        Ok(OfFacts { rows, complete: counted.1 <= MOST_LINKS_READ })
    }
}

const MISSING: Error = Error::NotFound("investigation");

/// That a body or a query names an investigation which is not there.
pub(crate) fn unknown() -> Error {
    Error::invalid("investigation_id", "the repository has no investigation of this id")
}

/// Adds a source that is just being added to an investigation that its request names; says whether that did not have it before.
pub(crate) async fn link(
    tx: &mut Tx,
    scope: &RepoAccess,
    investigation: Option<InvestigationId>,
    source: SourceId,
) -> Result<bool> {
    let Some(investigation) = investigation else { return Ok(false) };
    match investigations::link(tx, scope.repository(), investigation, source).await? {
        Linked::NoInvestigation => Err(unknown()),
        linked => is_new(linked),
    }
}

fn is_new(linked: Linked) -> Result<bool> {
    match linked {
        Linked::Added => Ok(true),
        Linked::Already => Ok(false),
        Linked::NoInvestigation => Err(MISSING),
        // It was there a moment ago.
        Linked::NoSource => Err(Error::Overloaded("the same source is just being deleted")),
        Linked::Full => Err(Error::Conflict(
            "the investigation has 10,000 sources, which is the most; remove some, or begin another one",
        )),
    }
}

async fn get(conn: &mut Connection, scope: &RepoAccess, id: InvestigationId) -> Result<Investigation> {
    investigations::find(conn, scope.repository(), id).await?.ok_or(MISSING)
}

fn refused(outcome: ImportOutcome) -> AddedCandidate {
    AddedCandidate { outcome, linked: false }
}

pub(crate) fn checked_title(title: &str) -> Result<String> {
    checked_name("title", title, 1, TITLE_LIMIT)
}

/// A question may have several lines.
pub(crate) fn checked_topic(topic: &str) -> Result<String> {
    let topic = topic.trim();
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if topic.chars().count() > TOPIC_LIMIT || topic.chars().any(control) {
        return Err(Error::invalid("topic", "must be at most 4000 characters without control characters"));
    }
    Ok(topic.to_owned())
}
