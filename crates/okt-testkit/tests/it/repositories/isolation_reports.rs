//! The functions on reports, for `isolation.rs`.

use okt_model::{
    ChangeCause, Posture, ReportId, ReportSentence, ReportStatus, RepositoryId, SentenceState, UserId,
};
use okt_store::report_annotations::{self, Judged, NewAnnotation};
use okt_store::report_changes::{self, NewChange};
use okt_store::report_sentences::{self, Checked, NewSentence};
use okt_store::reports::{self, NewReport, ReportUpdate};
use okt_store::{Connection, report_facts, report_words};

use crate::repositories::isolation::Call;

const TITLE: &str = "Their report";

/// A report with a part of it, a claim that a fact supports and that waits, and what was noted.
#[derive(Clone, Copy)]
pub(crate) struct Report {
    pub id: ReportId,
    pub no: i64,
    pub part: i64,
    pub sentence: i64,
    pub annotation: i64,
}

pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, fact: i64, source: i64) -> Report {
    let id = ReportId::mint();
    let new =
        NewReport { title: TITLE, topic: None, body: "Bees dance.", parent: None, language: Some("en") };
    let no = reports::insert(conn, repository, id, new).await.unwrap();
    let of = NewReport { parent: Some(no), ..new };
    let part = reports::insert(conn, repository, ReportId::mint(), of).await.unwrap();
    let claim = NewSentence { start: 0, end: 11, text: "Bees dance.".to_owned(), is_claim: true };
    report_sentences::replace(conn, repository, no, &[claim]).await.unwrap();
    let sentence = report_sentences::list(conn, repository, no, 0, 1).await.unwrap().remove(0).no;
    let said = [said(sentence, fact)];
    report_annotations::replace(conn, repository, no, &[sentence], &said).await.unwrap();
    report_changes::insert(conn, repository, no, &[change(sentence)]).await.unwrap();
    report_words::insert(conn, repository, no, &[(sentence, &["bee".to_owned()])]).await.unwrap();
    report_facts::note_source(conn, repository, source).await.unwrap();
    let of = report_sentences::get(conn, repository, sentence).await.unwrap().unwrap();
    let shown = report_annotations::list_of(conn, repository, vec![of]).await.unwrap();
    // None is shown of a fact that is a duplicate.
    let annotation = shown.first().map_or(0, |one| one.no);
    Report { id, no, part, sentence, annotation }
}

fn said(sentence: i64, fact: i64) -> NewAnnotation {
    let judged = Judged { posture: Some(Posture::Supports), confidence: 0.5, judged_by: "model".to_owned() };
    NewAnnotation { sentence, fact, score: 0.9, judged, is_near: true }
}

const fn change(sentence: i64) -> NewChange {
    let (after, cause) = (SentenceState::Supported, ChangeCause::Checked);
    NewChange { sentence, before: None, after, cause, fact: None, source_title: None, person: None }
}

fn as_it_is(report: &Report) -> okt_model::Report {
    let now = chrono::DateTime::UNIX_EPOCH;
    okt_model::Report {
        id: report.id,
        no: report.no,
        title: TITLE.to_owned(),
        topic: None,
        parent: None,
        language: None,
        status: ReportStatus::Pending,
        failure: None,
        sentence_count: 1,
        claim_count: 1,
        checked_at: None,
        created_at: now,
        updated_at: now,
    }
}

fn sentence(no: i64) -> ReportSentence {
    let text = "Bees dance.".to_owned();
    ReportSentence { no, place: 0, start: 0, end: 11, text, is_claim: true, is_waiting: true, state: None }
}

/// Writes what is one's own and finds nothing.
pub(crate) const WRITES: [&str; 28] = [
    // Their fact rests on a retracted source.
    "report_annotations::find_standing",
    "reports::insert",
    "reports::update",
    "reports::mark",
    "reports::reopen",
    // Their claim was checked for the first time.
    "reports::tell",
    "report_sentences::replace",
    "report_sentences::keep_vectors",
    "report_sentences::mark",
    "report_sentences::mark_outdated",
    "report_sentences::is_outdated",
    "report_sentences::is_any_left",
    "report_sentences::mark_indexed",
    "report_sentences::unindex",
    "report_sentences::settle",
    "report_sentences::set_state",
    "report_annotations::hold",
    "report_annotations::replace",
    "report_annotations::judge",
    // No person has said anything.
    "report_annotations::take_back",
    "report_annotations::forget_source",
    "report_changes::insert",
    "report_words::insert",
    "report_words::replace_title",
    "report_facts::note_source",
    "report_facts::delete",
    "report_facts::hold",
    "report_facts::share",
];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("reports::insert", |conn, repository, _| {
        Box::pin(async move {
            reports::insert(
                conn,
                repository,
                ReportId::mint(),
                NewReport { title: "Mine", topic: None, body: "", parent: None, language: None },
            )
            .await?;
            Ok(false)
        })
    }),
    ("reports::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(reports::find(conn, repository, theirs.report.id).await?.is_some()) })
    }),
    ("reports::get_body", |conn, repository, theirs| {
        Box::pin(async move { Ok(!reports::get_body(conn, repository, theirs.report.no).await?.is_empty()) })
    }),
    ("reports::hold", |conn, repository, theirs| {
        Box::pin(async move { Ok(reports::hold(conn, repository, theirs.report.id).await?.is_some()) })
    }),
    ("reports::list", |conn, repository, _| {
        Box::pin(async move {
            Ok(reports::list(conn, repository, None, None, 100).await?.iter().any(|one| one.title == TITLE))
        })
    }),
    ("reports::update", |conn, repository, theirs| {
        Box::pin(async move {
            reports::update(
                conn,
                repository,
                theirs.report.no,
                ReportUpdate { title: Some("Mine"), ..ReportUpdate::default() },
            )
            .await?;
            Ok(false)
        })
    }),
    ("reports::is_within", |conn, repository, theirs| {
        Box::pin(
            async move { reports::is_within(conn, repository, theirs.report.part, theirs.report.no).await },
        )
    }),
    ("reports::mark", |conn, repository, theirs| {
        Box::pin(async move {
            reports::mark(conn, repository, theirs.report.no, ReportStatus::Failed, Some(("code", "why")))
                .await?;
            Ok(false)
        })
    }),
    ("reports::reopen", |conn, repository, theirs| {
        Box::pin(async move {
            reports::reopen(conn, repository, &[theirs.report.no]).await?;
            Ok(false)
        })
    }),
    ("reports::tell", |conn, repository, theirs| {
        Box::pin(async move { Ok(reports::tell(conn, repository, theirs.report.no).await? > 0) })
    }),
    ("reports::identify", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!reports::identify(conn, repository, &[theirs.report.no]).await?.is_empty()) },
        )
    }),
    ("report_sentences::replace", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::replace(conn, repository, theirs.report.part, &[]).await?;
            Ok(false)
        })
    }),
    ("report_sentences::is_waiting", |conn, repository, theirs| {
        Box::pin(async move { report_sentences::is_waiting(conn, repository, theirs.report.no).await })
    }),
    ("report_sentences::list_waiting", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_sentences::list_waiting(conn, repository, theirs.report.no, None, 0, 10)
                .await?
                .is_empty())
        })
    }),
    ("report_sentences::list_claims", |conn, repository, _| {
        Box::pin(async move {
            Ok(!report_sentences::list_claims(conn, repository, None, 0, 10).await?.is_empty())
        })
    }),
    ("report_sentences::keep_vectors", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::keep_vectors(conn, repository, 1, &[(theirs.report.sentence, &[0.5])]).await?;
            Ok(false)
        })
    }),
    ("report_sentences::mark", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::mark(conn, repository, &[theirs.report.sentence]).await?;
            Ok(false)
        })
    }),
    ("report_sentences::mark_all", |conn, repository, theirs| {
        Box::pin(async move { Ok(report_sentences::mark_all(conn, repository, theirs.report.no).await? > 0) })
    }),
    ("report_sentences::mark_outdated", |conn, repository, _| {
        Box::pin(async move {
            report_sentences::mark_outdated(conn, repository, 9).await?;
            Ok(false)
        })
    }),
    ("report_sentences::is_outdated", |conn, repository, _| {
        Box::pin(async move {
            report_sentences::is_outdated(conn, repository, 9).await?;
            Ok(false)
        })
    }),
    ("report_sentences::is_any_left", |conn, repository, _| {
        Box::pin(async move {
            report_sentences::is_any_left(conn, repository).await?;
            Ok(false)
        })
    }),
    ("report_sentences::list_unindexed", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_sentences::list_unindexed(conn, repository, theirs.report.no, 10).await?.is_empty())
        })
    }),
    ("report_sentences::mark_indexed", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::mark_indexed(conn, repository, &[theirs.report.sentence]).await?;
            Ok(false)
        })
    }),
    ("report_sentences::unindex", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::unindex(conn, repository, theirs.report.no).await?;
            Ok(false)
        })
    }),
    ("report_sentences::list_compared", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_sentences::list_compared(conn, repository, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("report_sentences::list_waiting_reports", |conn, repository, _| {
        Box::pin(
            async move { Ok(!report_sentences::list_waiting_reports(conn, repository).await?.is_empty()) },
        )
    }),
    ("report_sentences::settle", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::settle(
                conn,
                repository,
                &[Checked { no: theirs.report.sentence, waiting: 1, state: SentenceState::Supported }],
            )
            .await?;
            Ok(false)
        })
    }),
    ("report_sentences::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_sentences::list(conn, repository, theirs.report.no, 0, 10).await?.is_empty())
        })
    }),
    ("report_sentences::count_checked", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(report_sentences::count_checked(conn, repository, theirs.report.no).await?.waiting > 0)
        })
    }),
    ("report_sentences::get", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(report_sentences::get(conn, repository, theirs.report.sentence).await?.is_some())
        })
    }),
    ("report_sentences::set_state", |conn, repository, theirs| {
        Box::pin(async move {
            report_sentences::set_state(conn, repository, theirs.report.sentence, SentenceState::Supported)
                .await?;
            Ok(false)
        })
    }),
    ("report_annotations::list_judged", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_annotations::list_judged(conn, repository, &[theirs.report.sentence])
                .await?
                .is_empty())
        })
    }),
    ("report_annotations::list_counted", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_annotations::list_counted(conn, repository, &[theirs.report.sentence])
                .await?
                .is_empty())
        })
    }),
    ("report_annotations::hold", |conn, repository, theirs| {
        Box::pin(async move {
            report_annotations::hold(conn, repository, &[theirs.report.sentence]).await?;
            Ok(false)
        })
    }),
    ("report_annotations::replace", |conn, repository, theirs| {
        Box::pin(async move {
            report_annotations::replace(
                conn,
                repository,
                theirs.report.no,
                &[theirs.report.sentence],
                &[said(theirs.report.sentence, theirs.fact_no)],
            )
            .await?;
            Ok(false)
        })
    }),
    ("report_annotations::find_standing", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_annotations::find_standing(conn, repository, theirs.report.no, None)
                .await?
                .supported
                .is_empty())
        })
    }),
    ("report_annotations::list_of", |conn, repository, theirs| {
        Box::pin(async move {
            let of = sentence(theirs.report.sentence);
            Ok(!report_annotations::list_of(conn, repository, vec![of]).await?.is_empty())
        })
    }),
    ("report_annotations::find_sentence", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(report_annotations::find_sentence(
                conn,
                repository,
                theirs.report.no,
                theirs.report.annotation,
            )
            .await?
            .is_some())
        })
    }),
    ("report_annotations::find_fact", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(report_annotations::find_fact(conn, repository, theirs.report.annotation).await?.is_some())
        })
    }),
    ("report_annotations::judge", |conn, repository, theirs| {
        Box::pin(async move {
            report_annotations::judge(
                conn,
                repository,
                theirs.report.annotation,
                Some(Posture::Related),
                UserId::mint(),
            )
            .await?;
            Ok(false)
        })
    }),
    ("report_annotations::take_back", |conn, repository, theirs| {
        Box::pin(async move {
            report_annotations::take_back(conn, repository, theirs.report.annotation).await?;
            Ok(false)
        })
    }),
    ("report_annotations::find_posture", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(report_annotations::find_posture(conn, repository, theirs.report.annotation).await?.is_some())
        })
    }),
    ("report_annotations::forget_source", |conn, repository, theirs| {
        Box::pin(async move {
            report_annotations::forget_source(conn, repository, theirs.source).await?;
            Ok(false)
        })
    }),
    ("report_annotations::count", |conn, repository, theirs| {
        Box::pin(async move {
            let report = as_it_is(theirs.report);
            Ok(report_annotations::count(conn, repository, &report).await?.waiting > 0)
        })
    }),
    ("report_changes::insert", |conn, repository, theirs| {
        Box::pin(async move {
            report_changes::insert(conn, repository, theirs.report.no, &[change(theirs.report.sentence)])
                .await?;
            Ok(false)
        })
    }),
    ("report_changes::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_changes::list(conn, repository, theirs.report.no, None, 10).await?.is_empty())
        })
    }),
    ("report_words::insert", |conn, repository, theirs| {
        Box::pin(async move {
            report_words::insert(
                conn,
                repository,
                theirs.report.no,
                &[(theirs.report.sentence, &["mine".to_owned()])],
            )
            .await?;
            Ok(false)
        })
    }),
    ("report_words::replace_title", |conn, repository, theirs| {
        Box::pin(async move {
            report_words::replace_title(conn, repository, theirs.report.no, &[]).await?;
            Ok(false)
        })
    }),
    ("report_words::list", |conn, repository, _| {
        Box::pin(async move {
            Ok(!report_words::list(conn, repository, &["bee".to_owned()], 10).await?.is_empty())
        })
    }),
    ("report_words::get", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!report_words::get(conn, repository, &[(theirs.report.no, theirs.report.sentence)])
                .await?
                .is_empty())
        })
    }),
    ("report_facts::is_any", |conn, repository, _| {
        Box::pin(async move { report_facts::is_any(conn, repository).await })
    }),
    ("report_facts::list", |conn, repository, _| {
        Box::pin(async move { Ok(!report_facts::list(conn, repository, 10).await?.0.is_empty()) })
    }),
    ("report_facts::note_source", |conn, repository, theirs| {
        Box::pin(async move {
            report_facts::note_source(conn, repository, theirs.source_no).await?;
            Ok(false)
        })
    }),
    ("report_facts::hold", |conn, repository, _| {
        Box::pin(async move {
            report_facts::hold(conn, repository).await?;
            Ok(false)
        })
    }),
    ("report_facts::share", |conn, repository, _| {
        Box::pin(async move {
            report_facts::share(conn, repository).await?;
            Ok(false)
        })
    }),
    ("report_facts::list_gone", |conn, repository, theirs| {
        Box::pin(async move {
            let gone = report_facts::list_gone(conn, repository, &[theirs.fact_no]).await?;
            Ok(!gone.contains(&theirs.fact_no))
        })
    }),
    ("report_facts::delete", |conn, repository, _| {
        Box::pin(async move {
            report_facts::delete(conn, repository, &[1]).await?;
            Ok(false)
        })
    }),
    ("reports::delete", |conn, repository, theirs| {
        Box::pin(async move { reports::delete(conn, repository, theirs.report.id).await })
    }),
];
