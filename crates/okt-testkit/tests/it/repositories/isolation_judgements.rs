//! What one tenant does with another's pairs of facts that may contradict each other.

use okt_model::{Difference, FactId, Posture, RepositoryId};
use okt_store::fact_judgements::{self, JudgedPair, NearFact};
use okt_store::{Connection, fact_contradictions};

use crate::repositories::isolation::Call;

/// A pair that waits, and its older fact to be compared anew.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, pair: (i64, i64)) {
    sqlx::query("INSERT INTO okt_repository.fact_judgements (repository_id, fact_no, other_no, cosine) VALUES ($1, $2, $3, 0.9) ON CONFLICT DO NOTHING")
        .bind(repository.uuid())
        .bind(pair.0)
        .bind(pair.1)
        .execute(&mut *conn)
        .await
        .unwrap();
    fact_judgements::note(conn, repository, &[pair.0]).await.unwrap();
}

/// The same, with the fact and one beside it; both speak of one thing.
pub(crate) async fn plant_for(conn: &mut Connection, repository: RepositoryId, fact: i64) {
    let other = other(conn, fact).await.unwrap().expect("another fact").0;
    plant(conn, repository, (fact.min(other), fact.max(other))).await;
    let concepts = "INSERT INTO okt_repository.relation_facts (repository_id, fact_no, concepts)
                    SELECT $1, n, '{1}' FROM unnest($2::bigint[]) AS n
                    ON CONFLICT (repository_id, fact_no) DO UPDATE SET concepts = relation_facts.concepts || 1::bigint";
    let planted = sqlx::query(concepts).bind(repository.uuid()).bind(vec![fact, other]);
    planted.execute(conn).await.unwrap();
}

/// A canonical fact beside this one, as far as it can be seen.
async fn other(conn: &mut Connection, fact: i64) -> okt_pg::Result<Option<(i64, FactId)>> {
    let found: Option<(i64, uuid::Uuid)> = sqlx::query_as(
        "SELECT o.no, o.id FROM okt_repository.facts f JOIN okt_repository.facts o USING (repository_id)
          WHERE f.no = $1 AND o.no <> f.no AND o.merged_into IS NULL",
    )
    .bind(fact)
    .fetch_optional(conn)
    .await?;
    Ok(found.map(|(no, id)| (no, id.into())))
}

fn judged(one: i64, other: i64, posture: Option<Posture>) -> JudgedPair {
    JudgedPair {
        facts: (one.min(other), one.max(other)),
        cosine: 0.9,
        posture,
        confidence: 0.8,
        judged_by: "judge".to_owned(),
    }
}

/// Those that write what is one's own, or say nothing of what they did.
pub(crate) const WRITES: [&str; 4] = [
    "fact_judgements::note",
    "fact_judgements::forget_unchecked",
    "fact_contradictions::insert_judged",
    "fact_contradictions::forget_judged",
];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("fact_judgements::note", |conn, repository, _| {
        Box::pin(async move {
            fact_judgements::note(conn, repository, &[9_999]).await?;
            fact_judgements::forget_unchecked(conn, repository, &[]).await?;
            sqlx::query("DELETE FROM okt_repository.unchecked_facts WHERE fact_no = 9999")
                .execute(conn)
                .await?;
            Ok(false)
        })
    }),
    ("fact_judgements::is_any", |conn, repository, _| {
        Box::pin(async move { fact_judgements::is_any(conn, repository).await })
    }),
    ("fact_judgements::list_unchecked", |conn, repository, theirs| {
        Box::pin(async move {
            let (facts, _) = fact_judgements::list_unchecked(conn, repository, 100).await?;
            let other = other(conn, theirs.fact_no).await?.map_or(0, |(no, _)| no);
            Ok(facts.iter().any(|(no, _)| [theirs.fact_no, other].contains(no)))
        })
    }),
    ("fact_judgements::plan", |conn, repository, theirs| {
        Box::pin(async move {
            let other = other(conn, theirs.fact_no).await?.map_or(theirs.duplicate, |(_, id)| id);
            // As if another judge had been asked before.
            let before =
                "UPDATE okt_repository.fact_judgements SET judged_by = 'nobody' WHERE repository_id = $1";
            sqlx::query(before).bind(repository.uuid()).execute(&mut *conn).await?;
            let near = [NearFact { fact: theirs.fact_no, other, cosine: 0.9 }];
            Ok(fact_judgements::plan(conn, repository, &near, 8, &[]).await? > 0)
        })
    }),
    ("fact_judgements::forget_unchecked", |conn, repository, _| {
        Box::pin(async move {
            let numbers: Vec<i64> = (1..1_000).collect();
            fact_judgements::forget_unchecked(conn, repository, &numbers).await?;
            Ok(false)
        })
    }),
    ("fact_judgements::list_waiting", |conn, repository, _| {
        Box::pin(async move { Ok(!fact_judgements::list_waiting(conn, repository, 0, 10).await?.is_empty()) })
    }),
    ("fact_judgements::hold", |conn, repository, theirs| {
        Box::pin(
            async move { Ok(!fact_judgements::hold(conn, repository, &[theirs.fact_no]).await?.is_empty()) },
        )
    }),
    ("fact_judgements::settle", |conn, repository, theirs| {
        Box::pin(async move {
            let other = other(conn, theirs.fact_no).await?.map_or(0, |(no, _)| no);
            let pair = judged(theirs.fact_no, other, None);
            Ok(!fact_judgements::settle(conn, repository, &[pair]).await?.is_empty())
        })
    }),
    ("fact_judgements::forget_gone", |conn, repository, theirs| {
        Box::pin(async move {
            let gone =
                "UPDATE okt_repository.facts SET status = 'rejected' WHERE repository_id = $1 AND no = $2";
            sqlx::query(gone).bind(repository.uuid()).bind(theirs.fact_no).execute(&mut *conn).await?;
            Ok(fact_judgements::forget_gone(conn, repository).await? > 0)
        })
    }),
    ("fact_contradictions::insert_judged", |conn, repository, theirs| {
        Box::pin(async move {
            let pair = judged(theirs.fact_no, theirs.fact_no + 2_000, Some(Posture::Contradicts));
            fact_contradictions::insert_judged(conn, repository, &[(pair, Difference::Wording)]).await?;
            Ok(false)
        })
    }),
    ("fact_contradictions::forget_judged", |conn, repository, theirs| {
        Box::pin(async move {
            let pairs = [(theirs.fact_no, theirs.fact_no + 2_000)];
            fact_contradictions::forget_judged(conn, repository, &pairs).await?;
            Ok(false)
        })
    }),
    ("fact_contradictions::list_side_sources", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(!fact_contradictions::list_side_sources(conn, repository, &[theirs.fact_no], 5)
                .await?
                .is_empty())
        })
    }),
];
