//! The functions on sources, for `isolation.rs`.

use okt_model::{
    Blob, BlobHash, FetchAttempt, ImageId, JobId, MarkKind, MarkOrigin, RepositoryId, SourceFailure,
    SourceFile, SourceFilter, SourceId, SourceImage, SourceStage, SourceStatus, SourceText, TextFile,
    TextParts, UserId,
};
use okt_store::source_marks::NewMark;
use okt_store::sources::{Fetched, NewSource};
use okt_store::{Connection, source_images, source_marks, source_texts, sources};

use crate::repositories::isolation::Call;
use crate::repositories::isolation_facts::named;

pub(crate) const THEIRS: &str = "theirs";
const DOI: &str = "10.1000/theirs";
const BODY: Blob = Blob { hash: BlobHash([7; 32]), size: 3 };

/// Their source, on its way to be fetched, with what belongs to one.
pub(crate) async fn plant(
    conn: &mut Connection,
    repository: RepositoryId,
    job: JobId,
    name: &str,
) -> (SourceId, ImageId) {
    let (id, image) = (SourceId::mint(), ImageId::mint());
    assert!(sources::insert(conn, repository, &new(id, job, name)).await.unwrap());
    assert!(sources::mark(conn, repository, id, job, SourceStatus::Fetching).await.unwrap());
    let fetched = Fetched { doi: Some(DOI.to_owned()), ..Fetched::default() };
    assert!(sources::mark_fetched(conn, repository, id, job, &fetched).await.unwrap());
    let failure = SourceFailure::new(SourceStage::Fetch, "x", "y", true);
    assert!(sources::mark_failed(conn, repository, id, job, &failure, &[]).await.unwrap());
    assert!(sources::mark(conn, repository, id, job, SourceStatus::Fetching).await.unwrap());
    source_texts::put(conn, repository, id, &text(THEIRS)).await.unwrap();
    source_images::replace(conn, repository, id, &[picture(image, THEIRS)]).await.unwrap();
    assert!(source_marks::set(conn, repository, id, marked(MarkKind::Retracted, None)).await.unwrap());
    (id, image)
}

fn new(id: SourceId, job: JobId, name: &str) -> NewSource {
    NewSource {
        locator: Some(name.to_owned()),
        body: Some(BODY),
        ..NewSource::new(id, job, format!("https://example.org/{name}"))
    }
}

fn marked(kind: MarkKind, by: Option<SourceId>) -> NewMark<'static> {
    NewMark { kind, by, reason: Some(THEIRS), person: UserId::mint() }
}

fn text(text: &str) -> SourceText {
    SourceText {
        text: text.to_owned(),
        sentences: vec![(0, i32::try_from(text.len()).unwrap())],
        ..SourceText::default()
    }
}

fn picture(id: ImageId, alt: &str) -> SourceImage {
    SourceImage {
        id,
        kind: "inline".to_owned(),
        page_number: None,
        position: 0,
        url: None,
        width: None,
        height: None,
        alt_text: Some(alt.to_owned()),
        content_type: None,
        blob: None,
    }
}

/// Those that write what is one's own find nothing.
pub(crate) const WRITES: [&str; 3] = ["sources::insert", "source_texts::put", "source_images::replace"];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("sources::insert", |conn, repository, _| {
        Box::pin(async move {
            sources::insert(conn, repository, &new(SourceId::mint(), JobId::mint(), "planted")).await?;
            Ok(false)
        })
    }),
    ("sources::find_same", |conn, repository, theirs| {
        Box::pin(async move {
            let same = new(theirs.source, theirs.job, THEIRS);
            Ok(sources::find_same(conn, repository, &same).await?.is_some())
        })
    }),
    ("sources::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(sources::find(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("sources::hold", |conn, repository, theirs| {
        Box::pin(async move { Ok(sources::hold(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("sources::list", |conn, repository, theirs| {
        Box::pin(async move {
            let mut found = false;
            for oldest_first in [false, true] {
                let filter = SourceFilter::default();
                let rows = sources::list(conn, repository, &filter, oldest_first, None, 100).await?;
                found |= rows.iter().any(|row| row.id == theirs.source);
            }
            Ok(found)
        })
    }),
    ("sources::list_named", |conn, repository, _| {
        Box::pin(async move {
            let by_name = sources::list_named(conn, repository, Some(THEIRS), "nothing", 100).await?;
            let by_part = sources::list_named(conn, repository, None, THEIRS, 100).await?;
            Ok(!by_name.is_empty() || !by_part.is_empty())
        })
    }),
    ("sources::list_known", |conn, repository, _| {
        Box::pin(
            async move { Ok(!sources::list_known(conn, repository, &[THEIRS.to_owned()]).await?.is_empty()) },
        )
    }),
    ("sources::list_there", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!sources::list_there(conn, repository, &[theirs.source]).await?.is_empty()) },
        )
    }),
    ("sources::list_wanted", |conn, repository, theirs| {
        Box::pin(async move {
            let file = SourceFile { repository, source: theirs.source, hash: BODY.hash };
            Ok(!sources::list_wanted(conn, repository, &[file]).await?.is_empty())
        })
    }),
    ("sources::mark", |conn, repository, theirs| {
        Box::pin(async move {
            sources::mark(conn, repository, theirs.source, theirs.job, SourceStatus::Fetching).await
        })
    }),
    ("sources::hand_over", |conn, repository, theirs| {
        Box::pin(async move {
            sources::hand_over(conn, repository, theirs.source, JobId::mint(), SourceStatus::Fetched).await
        })
    }),
    ("sources::mark_fetched", |conn, repository, theirs| {
        Box::pin(async move {
            sources::mark_fetched(conn, repository, theirs.source, theirs.job, &Fetched::default()).await
        })
    }),
    ("sources::mark_failed", |conn, repository, theirs| {
        Box::pin(async move {
            let failure = SourceFailure::new(SourceStage::Fetch, "mine", "mine", false);
            sources::mark_failed(conn, repository, theirs.source, theirs.job, &failure, &[]).await
        })
    }),
    ("sources::note_attempts", |conn, repository, theirs| {
        Box::pin(async move {
            let attempt = FetchAttempt {
                provider: "fetch".to_owned(),
                url: String::new(),
                status: None,
                ms: 1,
                outcome: "taken".to_owned(),
            };
            sources::note_attempts(conn, repository, theirs.source, theirs.job, &[attempt]).await
        })
    }),
    ("source_texts::find", |conn, repository, theirs| {
        Box::pin(async move {
            let found = source_texts::find(conn, repository, theirs.source).await?;
            Ok(found.is_some_and(|found| found.text == THEIRS))
        })
    }),
    ("source_texts::weigh", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(source_texts::weigh(conn, repository, theirs.source, TextParts::ALL).await?.is_some())
        })
    }),
    ("source_texts::find_parts", |conn, repository, theirs| {
        Box::pin(async move {
            let found = source_texts::find_parts(conn, repository, theirs.source, TextParts::ALL).await?;
            Ok(found.is_some_and(|found| found.text.as_deref() == Some(THEIRS)))
        })
    }),
    ("source_texts::find_file", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(source_texts::find_file(conn, repository, theirs.source, false).await?.is_some())
        })
    }),
    ("source_texts::read_piece", |conn, repository, theirs| {
        Box::pin(async move {
            let version =
                sqlx::query_scalar("SELECT xmin::text FROM okt_repository.source_texts WHERE source_id = $1");
            let version: Option<String> =
                version.bind(theirs.source.uuid()).fetch_optional(&mut *conn).await?;
            let version = version.unwrap_or_default();
            let file = TextFile { markdown: false, size: 9, sha256: String::new(), version };
            let piece = source_texts::read_piece(conn, repository, theirs.source, &file, 0, 9).await?;
            Ok(piece.is_some_and(|piece| THEIRS.as_bytes().starts_with(&piece)))
        })
    }),
    ("source_texts::count_sentences", |conn, repository, theirs| {
        Box::pin(async move { Ok(source_texts::count_sentences(conn, repository, theirs.source).await? > 0) })
    }),
    ("source_texts::find_passage", |conn, repository, theirs| {
        Box::pin(async move {
            let found = source_texts::find_passage(conn, repository, theirs.source, 0, 0).await?;
            Ok(!found.text.is_empty())
        })
    }),
    ("source_texts::is_there", |conn, repository, theirs| {
        Box::pin(async move { source_texts::is_there(conn, repository, theirs.source).await })
    }),
    ("source_texts::put", |conn, repository, theirs| {
        Box::pin(async move {
            source_texts::put(conn, repository, theirs.source, &text("mine")).await?;
            Ok(false)
        })
    }),
    ("source_images::list", |conn, repository, theirs| {
        Box::pin(async move {
            let found = source_images::list(conn, repository, theirs.source).await?;
            Ok(found.iter().any(|image| image.alt_text.as_deref() == Some(THEIRS)))
        })
    }),
    ("source_images::find", |conn, repository, theirs| {
        Box::pin(async move {
            let found = source_images::find(conn, repository, theirs.source, theirs.image).await?;
            Ok(found.is_some_and(|image| image.alt_text.as_deref() == Some(THEIRS)))
        })
    }),
    ("source_images::replace", |conn, repository, theirs| {
        Box::pin(async move {
            let mine = [picture(theirs.image, "mine")];
            source_images::replace(conn, repository, theirs.source, &mine).await?;
            Ok(false)
        })
    }),
    ("source_marks::set", |conn, repository, theirs| {
        Box::pin(async move {
            let mark = marked(MarkKind::Superseded, None);
            source_marks::set(conn, repository, theirs.source, mark).await
        })
    }),
    ("source_marks::remove", |conn, repository, theirs| {
        Box::pin(async move { source_marks::remove(conn, repository, theirs.source, UserId::mint()).await })
    }),
    ("source_marks::is_superseded_by", |conn, repository, theirs| {
        Box::pin(async move {
            let mine = SourceId::mint();
            sources::insert(conn, repository, &new(mine, JobId::mint(), &mine.to_string())).await?;
            let mark = marked(MarkKind::Superseded, Some(mine));
            source_marks::set(conn, repository, theirs.source, mark).await?;
            source_marks::is_superseded_by(conn, repository, theirs.source, mine).await
        })
    }),
    ("source_marks::match_dois", |conn, repository, _| {
        Box::pin(async move {
            Ok(!source_marks::match_dois(conn, repository, &[DOI.to_owned()]).await?.is_empty())
        })
    }),
    ("source_marks::insert_retracted", |conn, repository, theirs| {
        Box::pin(async move {
            let unmarked = sqlx::query("DELETE FROM okt_repository.source_marks WHERE repository_id = $1");
            unmarked.bind(repository.uuid()).execute(&mut *conn).await?;
            let found = [(theirs.source_no, None)];
            let origin = MarkOrigin::List;
            Ok(!source_marks::insert_retracted(conn, repository, &found, origin, None).await?.is_empty())
        })
    }),
    ("source_marks::mark_listed", |conn, repository, _| {
        Box::pin(async move {
            let unmarked = sqlx::query("DELETE FROM okt_repository.source_marks WHERE repository_id = $1");
            unmarked.bind(repository.uuid()).execute(&mut *conn).await?;
            Ok(source_marks::mark_listed(conn, repository, &[DOI.to_owned()]).await? > 0)
        })
    }),
    ("source_marks::get", |conn, repository, theirs| {
        Box::pin(async move { Ok(!source_marks::get(conn, repository, &[theirs.source]).await?.is_empty()) })
    }),
    ("source_marks::list_retracted_sources", |conn, repository, theirs| {
        Box::pin(async move {
            let sources = [theirs.source_no];
            Ok(!source_marks::list_retracted_sources(conn, repository, &sources).await?.is_empty())
        })
    }),
    ("source_marks::list_retracted_facts", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!source_marks::list_retracted_facts(conn, repository, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("source_marks::list_marked_facts", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!source_marks::list_marked_facts(conn, repository, &[theirs.fact_no]).await?.is_empty())
        })
    }),
    ("source_marks::list_retracted", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!source_marks::list_retracted(conn, repository, &[theirs.fact]).await?.is_empty())
        })
    }),
    ("source_marks::describe", |conn, repository, theirs| {
        Box::pin(async move {
            let mut facts = [named(theirs.fact, theirs.fact_no)];
            source_marks::describe(conn, repository, &mut facts).await?;
            Ok(facts[0].marked.is_retracted())
        })
    }),
    ("sources::delete", |conn, repository, theirs| {
        Box::pin(async move { sources::delete(conn, repository, theirs.source).await })
    }),
];
