//! The functions on answers, for `isolation.rs`.

use std::time::Duration;

use okt_model::{
    AnswerEvent, AnswerFilters, AnswerId, AnswerMode, AnswerStatus, ConversationId, Cost, Evidence,
    EvidenceKind, EvidenceSource, FactId, Feedback, FeedbackVerdict, Money, RepositoryId, SourceId, UserId,
    WhyExtractive,
};
use okt_store::answers::{self, AnswerEnd, AnswerFilter, NewAnswer};
use okt_store::{Connection, answer_events, answer_feedback, conversations, source_marks};
use uuid::Uuid;

use crate::repositories::isolation::Call;

const PRINT: [u8; 32] = [7; 32];
const KEY: [u8; 32] = [8; 32];

/// The same person everywhere: it is not the person that keeps repositories apart.
fn person() -> UserId {
    Uuid::from_u128(0x0197_a3c0_0000_7000_8000_0000_0000_00aa).into()
}

/// A conversation with an answer that runs, one that has ended, which cites a fact, and one that was stopped an hour ago.
#[derive(Clone, Copy)]
pub(crate) struct Planted {
    pub conversation: ConversationId,
    pub conversation_no: i64,
    pub running: AnswerId,
    pub running_no: i64,
    pub done: AnswerId,
    pub done_no: i64,
    pub stopped: AnswerId,
}

fn new(id: AnswerId, conversation: Option<i64>, filters: &AnswerFilters, keyed: bool) -> NewAnswer<'_> {
    NewAnswer {
        id,
        asked_by: person(),
        conversation,
        job: None,
        question: "Do bees dance?",
        searched: "Do bees dance?",
        filters,
        language: None,
        mode_asked: AnswerMode::Auto,
        mode: AnswerMode::Model,
        why_extractive: None,
        model: Some("m"),
        check_model: Some("m"),
        ask_version: 1,
        fingerprint: PRINT,
        request: keyed.then_some((KEY, PRINT)),
        shared: false,
        max_cost: Money::from_micros(50_000),
    }
}

const fn ended() -> AnswerEnd {
    AnswerEnd {
        status: AnswerStatus::Answered,
        mode: AnswerMode::Model,
        why_extractive: None,
        cached: false,
        cost: Cost { tokens_in: 1, tokens_out: 1, usd: Money::from_micros(5) },
        calls: 1,
        sentences: 1,
        whole: true,
    }
}

fn said() -> AnswerEvent {
    AnswerEvent::Turned { why: WhyExtractive::NoModel }
}

/// Evidence with words of a source.
fn quoted(source: SourceId) -> AnswerEvent {
    let evidence = Evidence {
        key: "kqzb".to_owned(),
        kind: EvidenceKind::Passage,
        fact: None,
        fact_no: None,
        text: "Bees dance.".to_owned(),
        quote: Some("Bees dance.".to_owned()),
        around: None,
        source: Some(EvidenceSource { id: source, title: None, published_at: None, page: None }),
        score: 1.0,
        found_by: Vec::new(),
        via: None,
        superseded: false,
        concepts: Vec::new(),
        language: None,
    };
    AnswerEvent::Evidence { facts: vec![evidence], near_only: false, degraded: None }
}

pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    fact: FactId,
    fact_no: i64,
) -> Planted {
    let (conversation, running, done) = (ConversationId::mint(), AnswerId::mint(), AnswerId::mint());
    let stopped = AnswerId::mint();
    conversations::insert(conn, repository, conversation, person(), Some("Bees")).await.unwrap();
    let conversation_no =
        conversations::hold(conn, repository, conversation, person()).await.unwrap().unwrap();
    let filters = AnswerFilters::default();
    let of = Some(conversation_no);
    let running_no = answers::insert(conn, repository, &new(running, of, &filters, false)).await.unwrap();
    // Furnishing twice leaves the key with the first.
    let keyed = answers::find_requested(conn, repository, person(), KEY).await.unwrap().is_none();
    let done_no = answers::insert(conn, repository, &new(done, of, &filters, keyed)).await.unwrap();
    let stopped_no = answers::insert(conn, repository, &new(stopped, of, &filters, false)).await.unwrap();
    let source = "SELECT id FROM okt_repository.sources WHERE repository_id = $1 ORDER BY no LIMIT 1";
    let source: Uuid =
        sqlx::query_scalar(source).bind(repository.uuid()).fetch_one(&mut *conn).await.unwrap();
    for no in [running_no, done_no] {
        answer_events::append(conn, repository, no, &[quoted(source.into()), said()]).await.unwrap();
    }
    answers::end(conn, repository, done_no, &ended()).await.unwrap();
    let end = AnswerEnd { status: AnswerStatus::Cancelled, whole: false, ..ended() };
    answers::end(conn, repository, stopped_no, &end).await.unwrap();
    let long_ago =
        "UPDATE okt_repository.answer_spending SET ended_at = clock_timestamp() - interval '1 hour'
                     WHERE repository_id = $1 AND answer_id = $2";
    sqlx::query(long_ago).bind(repository.uuid()).bind(stopped.uuid()).execute(&mut *conn).await.unwrap();
    answers::add_facts(conn, repository, done_no, &[(fact_no, fact)], true).await.unwrap();
    let feedback = Feedback { sentence: None, verdict: FeedbackVerdict::Right, note: None };
    answer_feedback::put(conn, repository, done_no, person(), &feedback).await.unwrap();
    Planted { conversation, conversation_no, running, running_no, done, done_no, stopped }
}

/// Writes what is one's own and finds nothing.
pub(crate) const WRITES: [&str; 7] = [
    "answers::insert",
    "answers::add_facts",
    "answers::settle",
    "answer_events::append",
    "answer_events::forget_source",
    "answer_feedback::put",
    "conversations::insert",
];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("answers::quote_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let filters = AnswerFilters::default();
            Ok(!answers::quote_facts(conn, repository, &[theirs.fact_no], &filters).await?.is_empty())
        })
    }),
    ("answers::insert", |conn, repository, _| {
        Box::pin(async move {
            let filters = AnswerFilters::default();
            answers::insert(conn, repository, &new(AnswerId::mint(), None, &filters, false)).await?;
            Ok(false)
        })
    }),
    ("answers::find_requested", |conn, repository, _| {
        Box::pin(async move { Ok(answers::find_requested(conn, repository, person(), KEY).await?.is_some()) })
    }),
    ("answers::find", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(answers::find(conn, repository, theirs.answer.done, person()).await?.is_some()) },
        )
    }),
    ("answers::hold_running", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(answers::hold_running(conn, repository, theirs.answer.running).await?.is_some())
        })
    }),
    ("answers::list", |conn, repository, theirs| {
        Box::pin(async move {
            let filter = AnswerFilter { shared: None, conversation: Some(theirs.answer.conversation_no) };
            Ok(!answers::list(conn, repository, person(), filter, None, 10).await?.is_empty())
        })
    }),
    // Others may be one's own, from the call above.
    ("answers::count_running", |conn, repository, theirs| {
        Box::pin(async move {
            let (_, all) = answers::count_running(conn, repository, person()).await?;
            let running = answers::list_running(conn, repository, 100).await?;
            let own = running.iter().filter(|answer| answer.id != theirs.answer.running).count();
            Ok(all > i64::try_from(own).unwrap())
        })
    }),
    ("answers::count_today", |conn, repository, theirs| {
        Box::pin(async move {
            let all = AnswerFilter::default();
            let today = answers::count_today(conn, repository, person()).await?;
            let listed = answers::list(conn, repository, person(), all, None, 1_000).await?;
            let own = listed.iter().filter(|answer| answer.id != theirs.answer.running).count();
            Ok(today > i64::try_from(own).unwrap())
        })
    }),
    ("answers::list_running", |conn, repository, theirs| {
        Box::pin(async move {
            let found = answers::list_running(conn, repository, 100).await?;
            Ok(found.iter().any(|answer| answer.id == theirs.answer.running))
        })
    }),
    ("answers::spent_today", |conn, repository, _| {
        // Of what was planted, what has ended has cost five millionths.
        Box::pin(async move {
            let spent = answers::spent_today(conn, repository, person()).await?;
            Ok(spent.micros() % 50_000 == 5)
        })
    }),
    ("answers::find_same", |conn, repository, _| {
        Box::pin(async move { Ok(answers::find_same(conn, repository, person(), PRINT).await?.is_some()) })
    }),
    ("answers::end", |conn, repository, theirs| {
        Box::pin(async move { answers::end(conn, repository, theirs.answer.running_no, &ended()).await })
    }),
    ("answers::hold", |conn, repository, theirs| {
        Box::pin(async move { answers::hold(conn, repository, theirs.answer.done_no).await })
    }),
    ("answers::list_standing", |conn, repository, theirs| {
        Box::pin(async move {
            // Its only source is retracted, and so it would not stand.
            source_marks::remove(conn, repository, theirs.source, person()).await?;
            Ok(!answers::list_standing(conn, repository, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("answers::list_unsettled", |conn, repository, theirs| {
        Box::pin(async move {
            let found = answers::list_unsettled(conn, repository, person(), Duration::from_mins(20)).await?;
            Ok(found.contains(&theirs.answer.stopped))
        })
    }),
    ("answers::settle", |conn, repository, theirs| {
        Box::pin(async move {
            let cost = [(theirs.answer.stopped, Money::from_micros(1))];
            answers::settle(conn, repository, person(), &cost).await?;
            Ok(false)
        })
    }),
    ("answers::share", |conn, repository, theirs| {
        Box::pin(async move { answers::share(conn, repository, theirs.answer.done, person(), true).await })
    }),
    ("answers::delete", |conn, repository, theirs| {
        Box::pin(async move {
            let gone = answers::delete(conn, repository, person(), Some(theirs.answer.done), None).await?;
            Ok(!gone.is_empty())
        })
    }),
    ("answers::add_facts", |conn, repository, theirs| {
        Box::pin(async move {
            let fact = [(theirs.fact_no, theirs.fact)];
            answers::add_facts(conn, repository, theirs.answer.running_no, &fact, true).await?;
            Ok(false)
        })
    }),
    // The planted fact rests on a retracted source.
    ("answers::list_changes", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!answers::list_changes(conn, repository, &[theirs.answer.done_no]).await?.is_empty())
        })
    }),
    ("answers::mark_changed", |conn, repository, theirs| {
        Box::pin(async move {
            let marked = answers::mark_changed(conn, repository, &[theirs.fact_no]).await?;
            Ok(marked.contains(&theirs.answer.done))
        })
    }),
    ("answers::costs", |conn, repository, _| {
        Box::pin(async move { Ok(answers::costs(conn, repository).await?.answers > 0) })
    }),
    ("answer_events::append", |conn, repository, theirs| {
        Box::pin(async move {
            answer_events::append(conn, repository, theirs.answer.done_no, &[said()]).await?;
            Ok(false)
        })
    }),
    ("answer_events::forget_source", |conn, repository, theirs| {
        Box::pin(async move {
            answer_events::forget_source(conn, repository, theirs.source).await?;
            Ok(false)
        })
    }),
    ("answer_events::last_place", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(answer_events::last_place(conn, repository, theirs.answer.running_no).await? > 0)
        })
    }),
    // The second: the first may be one's own, under the same number.
    ("answer_events::list", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!answer_events::list(conn, repository, theirs.answer.running_no, 0).await?.is_empty())
        })
    }),
    ("answer_feedback::put", |conn, repository, theirs| {
        Box::pin(async move {
            let feedback = Feedback { sentence: Some(1), verdict: FeedbackVerdict::Wrong, note: None };
            answer_feedback::put(conn, repository, theirs.answer.done_no, person(), &feedback).await?;
            Ok(false)
        })
    }),
    ("answer_feedback::list", |conn, repository, theirs| {
        Box::pin(async move {
            let found = answer_feedback::list(conn, repository, theirs.answer.done_no, person()).await?;
            Ok(found.iter().any(|one| one.verdict == FeedbackVerdict::Right))
        })
    }),
    ("conversations::insert", |conn, repository, _| {
        Box::pin(async move {
            conversations::insert(conn, repository, ConversationId::mint(), person(), None).await?;
            Ok(false)
        })
    }),
    ("conversations::list", |conn, repository, theirs| {
        Box::pin(async move {
            let id = Some(theirs.answer.conversation);
            Ok(!conversations::list(conn, repository, person(), id, None, 10).await?.is_empty())
        })
    }),
    ("conversations::hold", |conn, repository, theirs| {
        Box::pin(async move {
            let id = theirs.answer.conversation;
            Ok(conversations::hold(conn, repository, id, person()).await?.is_some())
        })
    }),
    ("conversations::delete", |conn, repository, theirs| {
        Box::pin(async move {
            let before = Some(theirs.answer.conversation);
            let there = conversations::list(conn, repository, person(), before, None, 1).await?;
            conversations::delete(conn, repository, theirs.answer.conversation_no).await?;
            let left = conversations::list(conn, repository, person(), before, None, 1).await?;
            Ok(there.len() > left.len())
        })
    }),
];
