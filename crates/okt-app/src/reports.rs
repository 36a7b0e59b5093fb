//! Reports: what somebody wrote, checked sentence by sentence against the facts, and kept so.

use okt_auth::permissions::{ReportDelete, ReportRead, ReportUpdate as Update, ReportWrite};
use okt_auth::{RepoAccess, RepoScope};
use okt_check::Cut;
use okt_model::{
    AnnotateReport, Annotation, ChangeCause, CheckReports, Error, JobId, MOST_REPORT_SENTENCES, Posture,
    Report, ReportChange, ReportCounts, ReportId, ReportSentence, ReportStatus, Result, SentenceState,
};
use okt_store::outbox::{self, When};
use okt_store::report_changes::{self, Judgement, NewChange};
use okt_store::report_sentences;
use okt_store::reports::{self, NewReport, ReportUpdate};
use okt_store::{Connection, Tx, counters, report_annotations, report_facts, report_words};

use crate::investigations::{checked_title, checked_topic};
use crate::{App, Origin};

const COUNTER: &str = "reports";
const NOT_CHECKED: &str = "reports are not checked here; an operator has to set providers.reports.enabled";
/// Sentences whose annotations are read at once, for one page.
const SENTENCES: i64 = 200;
/// So often at most; whoever wants more asks for the next page.
const READS: usize = 25;

/// What somebody writes.
pub struct ReportText<'a> {
    pub title: &'a str,
    pub topic: Option<&'a str>,
    pub body: &'a str,
    pub parent: Option<ReportId>,
}

/// What is missing stays.
#[derive(Default)]
pub struct ReportEdit<'a> {
    pub title: Option<&'a str>,
    /// An empty one removes it.
    pub topic: Option<&'a str>,
    pub body: Option<&'a str>,
    /// `Some(None)` takes the report out of the one that it is a part of.
    pub parent: Option<Option<ReportId>>,
}

/// A report with how its claims stand.
pub struct SeenReport {
    pub report: Report,
    pub counts: ReportCounts,
    /// If it was asked for.
    pub body: Option<String>,
}

/// How the claims of a report stand, and how they came to.
pub struct ReportHealth {
    pub report: Report,
    pub counts: ReportCounts,
    /// The newest first.
    pub changes: Vec<ReportChange>,
}

impl App {
    /// Keeps a report, and has its claims checked; the job that does.
    pub async fn create_report(
        &self,
        scope: &RepoScope<ReportWrite>,
        text: ReportText<'_>,
    ) -> Result<(SeenReport, Option<JobId>)> {
        let (title, topic) = (checked_title(text.title)?, text.topic.map(checked_topic).transpose()?);
        let topic = topic.filter(|topic| !topic.is_empty());
        let cut = self.cut(BODY, text.body).await?;
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // Before a report is held, as whoever changes or deletes one does: nobody waits in a circle.
        counters::add(&mut tx, repository, COUNTER, 1).await?;
        let parent = match text.parent {
            Some(parent) => {
                Some(reports::hold(&mut tx, repository, parent).await?.ok_or_else(unknown_parent)?)
            }
            None => None,
        };
        let id = ReportId::mint();
        let new = NewReport {
            title: &title,
            topic: topic.as_deref(),
            body: text.body,
            parent,
            language: cut.language.as_deref(),
        };
        let no = reports::insert(&mut tx, repository, id, new).await?;
        report_sentences::replace(&mut tx, repository, no, &cut.sentences).await?;
        let words = words_of(&title, cut.language.as_deref());
        report_words::replace_title(&mut tx, repository, no, &words).await?;
        let job = self.ask_for_check(&mut tx, scope, id, no).await?;
        tx.commit().await?;
        Ok((self.load_report(scope, id, false).await?, job))
    }

    /// The newest first; only the parts of one, if that is named.
    pub async fn list_reports(
        &self,
        scope: &RepoScope<ReportRead>,
        parent: Option<ReportId>,
        before: Option<ReportId>,
        limit: i64,
    ) -> Result<Vec<Report>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let parent = match parent {
            Some(parent) => {
                let parent = reports::find(&mut tx, repository, parent).await?;
                Some(parent.ok_or_else(unknown_parent)?.no)
            }
            None => None,
        };
        let found = reports::list(&mut tx, repository, parent, before, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn find_report(
        &self,
        scope: &RepoScope<ReportRead>,
        id: ReportId,
        with_body: bool,
    ) -> Result<SeenReport> {
        self.load_report(scope, id, with_body).await
    }

    /// What is left out stays as it is. Sentences that stay keep what was said of them; the others are checked, by the job.
    pub async fn update_report(
        &self,
        scope: &RepoScope<Update>,
        id: ReportId,
        edit: ReportEdit<'_>,
    ) -> Result<(SeenReport, Option<JobId>)> {
        let title = edit.title.map(checked_title).transpose()?;
        let topic = edit.topic.map(checked_topic).transpose()?;
        let cut = match edit.body {
            Some(body) => Some((body, self.cut(BODY, body).await?)),
            None => None,
        };
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        // Two that become parts of each other at once would make a circle.
        counters::add(&mut tx, repository, COUNTER, 0).await?;
        let no = reports::hold(&mut tx, repository, id).await?.ok_or(MISSING)?;
        let parent = match edit.parent {
            Some(Some(parent)) => {
                let parent = reports::find(&mut tx, repository, parent).await?.ok_or_else(unknown_parent)?;
                if reports::is_within(&mut tx, repository, parent.no, no).await? {
                    return Err(Error::Conflict("a report can't be a part of itself or of one of its parts"));
                }
                Some(Some(parent.no))
            }
            Some(None) => Some(None),
            None => None,
        };
        let update = ReportUpdate {
            title: title.as_deref(),
            topic: topic.as_deref(),
            body: cut.as_ref().map(|(body, cut)| (*body, cut.language.as_deref())),
            parent,
        };
        let before = get(&mut tx, scope, id).await?;
        reports::update(&mut tx, repository, no, update).await?;
        let now = get(&mut tx, scope, id).await?;
        let words = words_of(&now.title, now.language.as_deref());
        report_words::replace_title(&mut tx, repository, no, &words).await?;
        let mut job = None;
        if let Some((_, cut)) = &cut {
            if now.language != before.language {
                report_sentences::unindex(&mut tx, repository, no).await?;
            }
            report_sentences::replace(&mut tx, repository, no, &cut.sentences).await?;
            job = self.ask_for_check(&mut tx, scope, id, no).await?;
        }
        tx.commit().await?;
        Ok((self.load_report(scope, id, false).await?, job))
    }

    /// Removes a report with all that was said of it. Its parts stay.
    pub async fn delete_report(
        &self,
        origin: &Origin,
        scope: &RepoScope<ReportDelete>,
        id: ReportId,
    ) -> Result<()> {
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        counters::add(&mut tx, repository, COUNTER, -1).await?;
        if !reports::delete(&mut tx, repository, id).await? {
            return Err(MISSING);
        }
        self.commit_recorded(tx, origin, scope, "report.deleted", &id.to_string()).await
    }

    /// Has all claims of a report checked once more.
    pub async fn annotate_report(&self, scope: &RepoScope<Update>, id: ReportId) -> Result<JobId> {
        if !self.config().providers.reports.enabled {
            return Err(Error::NotConfigured(NOT_CHECKED));
        }
        let repository = scope.repository();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let no = reports::hold(&mut tx, repository, id).await?.ok_or(MISSING)?;
        report_sentences::mark_all(&mut tx, repository, no).await?;
        reports::reopen(&mut tx, repository, &[no]).await?;
        let job = JobId::mint();
        outbox::push(&mut tx, repository, job, &AnnotateReport { report: id }, When::default()).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// The sentences of a report from a place on, as they stand.
    pub async fn list_report_sentences(
        &self,
        scope: &RepoScope<ReportRead>,
        id: ReportId,
        from: i32,
        limit: i64,
    ) -> Result<Vec<ReportSentence>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let no = get(&mut tx, scope, id).await?.no;
        let sentences = sentences(&mut tx, scope, no, from, limit).await?;
        tx.commit().await?;
        Ok(sentences)
    }

    /// What was said of the sentences of a report and the facts near them, sentence by sentence from a place on; the place of the next
    /// sentence, if there are more. A sentence is never cut in two, so there may be more than `limit`; there may be fewer where many
    /// sentences have none.
    pub async fn list_annotations(
        &self,
        scope: &RepoScope<ReportRead>,
        id: ReportId,
        mut from: i32,
        limit: usize,
    ) -> Result<(Vec<Annotation>, Option<i32>)> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let no = get(&mut tx, scope, id).await?.no;
        let mut found: Vec<Annotation> = Vec::new();
        for _ in 0..READS {
            let batch = sentences(&mut tx, scope, no, from, SENTENCES).await?;
            let Some(last) = batch.last() else {
                tx.commit().await?;
                return Ok((found, None));
            };
            let (last, whole) =
                (last.place, i64::try_from(batch.len()).is_ok_and(|count| count == SENTENCES));
            let annotations = report_annotations::list_of(&mut tx, repository, batch).await?;
            for annotation in annotations {
                let place = annotation.sentence.place;
                if found.len() >= limit && found.last().is_some_and(|before| before.sentence.place != place) {
                    tx.commit().await?;
                    return Ok((found, Some(place)));
                }
                found.push(annotation);
            }
            if !whole {
                tx.commit().await?;
                return Ok((found, None));
            }
            from = last + 1;
        }
        tx.commit().await?;
        Ok((found, Some(from)))
    }

    /// What was said of these sentences of a report and the facts near them, by the places of the sentences.
    pub async fn list_annotations_of(
        &self,
        scope: &RepoScope<ReportRead>,
        id: ReportId,
        places: &[i32],
    ) -> Result<Vec<Annotation>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let no = get(&mut tx, scope, id).await?.no;
        let mut wanted = Vec::new();
        for place in places {
            let found = report_sentences::list(&mut tx, repository, no, *place, 1).await?;
            wanted.extend(found.into_iter().filter(|sentence| sentence.place == *place));
        }
        let found = report_annotations::list_of(&mut tx, repository, wanted).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// How the claims of a report stand, and how they came to, from before a change on; without a limit no more than how they stand.
    pub async fn find_report_health(
        &self,
        scope: &RepoScope<ReportRead>,
        id: ReportId,
        before: Option<i64>,
        limit: Option<i64>,
    ) -> Result<ReportHealth> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let report = get(&mut tx, scope, id).await?;
        let counts = count(&mut tx, scope, &report).await?;
        let changes = match limit {
            Some(limit) => report_changes::list(&mut tx, repository, report.no, before, limit).await?,
            None => Vec::new(),
        };
        tx.commit().await?;
        Ok(ReportHealth { report, counts, changes })
    }

    /// A person says how a fact stands to a sentence, where `Some(None)` is not at all. That stays, whatever a model says later, until a
    /// person takes it back with `None`; then the pair is judged anew.
    pub async fn judge_annotation(
        &self,
        origin: &Origin,
        scope: &RepoScope<Update>,
        id: ReportId,
        annotation: i64,
        posture: Option<Option<Posture>>,
    ) -> Result<Annotation> {
        let repository = scope.repository();
        let person = scope.caller().user();
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        let no = reports::hold(&mut tx, repository, id).await?.ok_or(MISSING)?;
        let sentence = report_annotations::find_sentence(&mut tx, repository, no, annotation).await?;
        let sentence = sentence.ok_or(Error::NotFound("annotation"))?;
        let of = report_sentences::get(&mut tx, repository, sentence).await?;
        let of = of.ok_or(Error::NotFound("annotation"))?;
        let said = report_annotations::find_posture(&mut tx, repository, annotation).await?;
        let said = said.ok_or(Error::NotFound("annotation"))?;
        let is_on = self.config().providers.reports.enabled;
        if let Some(posture) = posture {
            report_annotations::judge(&mut tx, repository, annotation, posture, person).await?;
        } else if report_annotations::take_back(&mut tx, repository, annotation).await? {
            report_sentences::mark(&mut tx, repository, &[sentence]).await?;
            if is_on {
                reports::reopen(&mut tx, repository, &[no]).await?;
            }
        } else {
            return Err(Error::Conflict("no person has judged this, so there is nothing to take back"));
        }
        let before = of.state;
        let after = standing(&mut tx, scope, no, sentence).await?;
        let of = report_sentences::get(&mut tx, repository, sentence)
            .await?
            .ok_or(Error::NotFound("annotation"))?;
        let all = report_annotations::list_of(&mut tx, repository, vec![of]).await?;
        let judged = all.into_iter().find(|one| one.no == annotation).ok_or(Error::NotFound("annotation"))?;
        let change = NewChange {
            sentence,
            before,
            after,
            cause: ChangeCause::Person,
            fact: report_annotations::find_fact(&mut tx, repository, annotation).await?,
            source_title: None,
            person: Some(Judgement { person, before: said, after: posture }),
        };
        report_sentences::set_state(&mut tx, repository, sentence, after).await?;
        report_changes::insert(&mut tx, repository, no, &[change]).await?;
        // It tells whoever listens, and judges what nobody has judged any more.
        if is_on && (before != Some(after) || posture.is_none()) {
            let payload = AnnotateReport { report: id };
            outbox::push(&mut tx, repository, JobId::mint(), &payload, When::default()).await?;
        }
        let object = format!("{id}/annotations/{annotation}");
        self.commit_recorded(tx, origin, scope, "report.judged", &object).await?;
        Ok(judged)
    }

    /// Has reports compared with facts that the caller has changed in this transaction.
    pub(crate) async fn ask_for_reports(&self, conn: &mut Connection, scope: &RepoAccess) -> Result<()> {
        if report_facts::is_any(conn, scope.repository()).await? {
            outbox::push(conn, scope.repository(), JobId::mint(), &CheckReports {}, When::default()).await?;
        }
        Ok(())
    }

    /// Has new sentences checked; the job. Where reports are not checked, the report says so.
    async fn ask_for_check(
        &self,
        tx: &mut Tx,
        scope: &RepoAccess,
        id: ReportId,
        no: i64,
    ) -> Result<Option<JobId>> {
        let repository = scope.repository();
        if !self.config().providers.reports.enabled {
            let failure = Some(("not_configured", NOT_CHECKED));
            reports::mark(tx, repository, no, ReportStatus::Failed, failure).await?;
            return Ok(None);
        }
        if report_sentences::is_waiting(tx, repository, no).await? {
            reports::reopen(tx, repository, &[no]).await?;
        }
        let job = JobId::mint();
        outbox::push(tx, repository, job, &AnnotateReport { report: id }, When::default()).await?;
        Ok(Some(job))
    }

    async fn load_report(&self, scope: &RepoAccess, id: ReportId, with_body: bool) -> Result<SeenReport> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let report = get(&mut tx, scope, id).await?;
        let counts = count(&mut tx, scope, &report).await?;
        let body =
            if with_body { Some(reports::get_body(&mut tx, repository, report.no).await?) } else { None };
        tx.commit().await?;
        Ok(SeenReport { report, counts, body })
    }

    /// The sentences of a text, which is this field of a request. Cutting a long one takes a while.
    pub(crate) async fn cut(&self, field: &'static str, body: &str) -> Result<Cut> {
        let least = usize::try_from(self.config().providers.reports.min_sentence_runes).unwrap_or(usize::MAX);
        let body = body.to_owned();
        let cut = tokio::task::spawn_blocking(move || Cut::new(&body, None, least))
            .await
            .map_err(Error::internal)?;
        if cut.sentences.len() > MOST_REPORT_SENTENCES {
            return Err(Error::invalid(field, "has more than 50,000 sentences, which is the most"));
        }
        Ok(cut)
    }
}

/// By which a text is found, each once.
fn words_of(text: &str, language: Option<&str>) -> Vec<String> {
    okt_check::lexemes(text, language).into_iter().collect()
}

const BODY: &str = "body_markdown";
const MISSING: Error = Error::NotFound("report");

fn unknown_parent() -> Error {
    Error::invalid("parent_id", "the repository has no report of this id")
}

pub(crate) async fn get(conn: &mut Connection, scope: &RepoAccess, id: ReportId) -> Result<Report> {
    reports::find(conn, scope.repository(), id).await?.ok_or(MISSING)
}

async fn count(conn: &mut Connection, scope: &RepoAccess, report: &Report) -> Result<ReportCounts> {
    Ok(report_annotations::count(conn, scope.repository(), report).await?)
}

/// Sentences, with how they stand now: facts may be gone since they were checked.
pub(crate) async fn sentences(
    conn: &mut Connection,
    scope: &RepoAccess,
    report: i64,
    from: i32,
    limit: i64,
) -> Result<Vec<ReportSentence>> {
    let mut sentences = report_sentences::list(conn, scope.repository(), report, from, limit).await?;
    let numbers: Vec<i64> = sentences.iter().map(|sentence| sentence.no).collect();
    let standing =
        report_annotations::find_standing(conn, scope.repository(), report, Some(&numbers)).await?;
    for sentence in sentences.iter_mut().filter(|sentence| sentence.state.is_some()) {
        let (supported, contradicted) =
            (standing.supported.contains(&sentence.no), standing.contradicted.contains(&sentence.no));
        sentence.state = Some(SentenceState::of(supported, contradicted));
    }
    Ok(sentences)
}

async fn standing(
    conn: &mut Connection,
    scope: &RepoAccess,
    report: i64,
    sentence: i64,
) -> Result<SentenceState> {
    let standing =
        report_annotations::find_standing(conn, scope.repository(), report, Some(&[sentence])).await?;
    Ok(SentenceState::of(standing.supported.contains(&sentence), standing.contradicted.contains(&sentence)))
}
