//! Rows of `okt_repository.fact_contradictions`: facts that sound alike and do not say the same. Whether they contradict each
//! other is for people to say; that they may is kept for them to see.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use okt_model::{
    Contradiction, ContradictionFoundBy, ContradictionMark, ContradictionState, Difference,
    FoundContradiction, RepositoryId, SideSource, UserId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::fact_judgements::JudgedPair;
use crate::words::word;
use okt_pg::Result;

/// Two facts by their numbers, and how they differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewContradiction {
    pub facts: (i64, i64),
    pub difference: Difference,
    pub cosine: f32,
    pub found_by: ContradictionFoundBy,
}

/// A place in a list of contradictions: the facts by their numbers, the greater one first.
pub type ContradictionPlace = (i64, i64);

/// Keeps them; what was known before stays as it is, unless somebody has looked at it now.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    found: &[NewContradiction],
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let (mut facts, mut others) = (Vec::new(), Vec::new());
    let (mut differences, mut cosines, mut found_by) = (Vec::new(), Vec::new(), Vec::new());
    for NewContradiction { facts: (one, other), difference, cosine, found_by: by } in found {
        facts.push(*one.min(other));
        others.push(*one.max(other));
        differences.push(difference.as_str().to_owned());
        cosines.push(*cosine);
        found_by.push(by.as_str().to_owned());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.fact_contradictions AS c (repository_id, fact_no, other_no, difference, cosine, found_by)
         SELECT DISTINCT ON (n.fact, n.other) $1, n.fact, n.other, n.difference, n.cosine, n.found_by
           FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::real[], $6::text[])
                AS n (fact, other, difference, cosine, found_by)
          ORDER BY n.fact, n.other
         ON CONFLICT (repository_id, fact_no, other_no) DO UPDATE SET difference = excluded.difference
          WHERE excluded.difference = 'judged'",
        repository.uuid(),
        &facts,
        &others,
        &differences,
        &cosines,
        &found_by,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Keeps contradictions that a judge has found. What was known before says who judged it now.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.insert_judged", skip_all)]
pub async fn insert_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    found: &[(JudgedPair, Difference)],
) -> Result<()> {
    let (mut facts, mut others, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cosines, mut judges, mut confidences) = (Vec::new(), Vec::new(), Vec::new());
    for (pair, difference) in found {
        facts.push(pair.facts.0);
        others.push(pair.facts.1);
        differences.push(difference.as_str().to_owned());
        cosines.push(pair.cosine);
        judges.push(pair.judged_by.clone());
        confidences.push(pair.confidence);
    }
    sqlx::query!(
        "INSERT INTO okt_repository.fact_contradictions
                (repository_id, fact_no, other_no, difference, cosine, found_by, judged_by, confidence)
         SELECT $1, n.fact, n.other, n.difference, n.cosine, 'posture', n.judge, n.confidence
           FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::real[], $6::text[], $7::real[])
                AS n (fact, other, difference, cosine, judge, confidence)
          ORDER BY n.fact, n.other
         ON CONFLICT (repository_id, fact_no, other_no) DO UPDATE
            SET judged_by = excluded.judged_by, confidence = excluded.confidence",
        repository.uuid(),
        &facts,
        &others,
        &differences,
        &cosines,
        &judges,
        &confidences,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a judge said of these pairs before does not hold any more. A merge that was refused stays refused.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.forget_judged", skip_all)]
pub async fn forget_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    pairs: &[(i64, i64)],
) -> Result<()> {
    let (facts, others): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    sqlx::query!(
        "WITH gone AS (
             DELETE FROM okt_repository.fact_contradictions c
              USING unnest($2::bigint[], $3::bigint[]) AS n (fact, other)
              WHERE c.repository_id = $1 AND c.fact_no = n.fact AND c.other_no = n.other AND c.found_by = 'posture')
         UPDATE okt_repository.fact_contradictions c SET judged_by = NULL, confidence = NULL
           FROM unnest($2::bigint[], $3::bigint[]) AS n (fact, other)
          WHERE c.repository_id = $1 AND c.fact_no = n.fact AND c.other_no = n.other AND c.found_by <> 'posture'
            AND c.judged_by IS NOT NULL",
        repository.uuid(),
        &facts,
        &others,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The pairs among these facts that somebody has said are not the same, the smaller number first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_judged", skip_all)]
pub async fn list_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashSet<(i64, i64)>> {
    let rows = sqlx::query!(
        "SELECT fact_no, other_no FROM okt_repository.fact_contradictions
          WHERE repository_id = $1 AND difference = 'judged' AND fact_no = ANY ($2) AND other_no = ANY ($2)",
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.fact_no, row.other_no)).collect())
}

/// The pairs among these facts, which are canonical ones, that may contradict each other, themselves or through duplicates, but
/// for those of which people say that they don't; the smaller number first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_among", skip_all)]
pub async fn list_among(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"WITH members AS MATERIALIZED (
               SELECT f.no, f.no AS canonical FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = ANY ($2)
                UNION ALL
               SELECT f.no, f.merged_into FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.merged_into = ANY ($2))
           SELECT DISTINCT least(m.canonical, o.canonical) AS "one!", greatest(m.canonical, o.canonical) AS "other!"
             FROM members m
             JOIN okt_repository.fact_contradictions c
               ON c.repository_id = $1 AND c.fact_no = m.no AND c.difference <> 'judged'
                   AND (c.difference NOT IN ('name', 'wording') OR c.judged_by IS NOT NULL)
             JOIN members o ON o.no = c.other_no
            WHERE m.canonical <> o.canonical
              AND okt_repository.contradiction_state($1, least(m.canonical, o.canonical), greatest(m.canonical, o.canonical))
                  IS DISTINCT FROM 'not_a_contradiction'
            ORDER BY 1, 2"#,
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.one, row.other)).collect())
}

/// The candidate contradictions of a fact, which is given with its duplicates, the nearest first; without those of which people
/// say that they are none.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    fact: i64,
    facts: &[i64],
    limit: i64,
) -> Result<Vec<Contradiction>> {
    let pairs = sqlx::query!(
        r#"SELECT other_no AS "no!", difference AS "difference!", cosine AS "cosine!"
             FROM okt_repository.fact_contradictions WHERE repository_id = $1 AND fact_no = ANY ($2)
            UNION ALL
           SELECT fact_no, difference, cosine
             FROM okt_repository.fact_contradictions WHERE repository_id = $1 AND other_no = ANY ($2)"#,
        repository.uuid(),
        facts,
    );
    let pairs = pairs.fetch_all(&mut *conn).await?;
    // Most facts have none, and what follows is the dearest statement of all that a fact is read with.
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let (mut others, mut differences, mut cosines) = (Vec::new(), Vec::new(), Vec::new());
    for pair in pairs {
        others.push(pair.no);
        differences.push(pair.difference);
        cosines.push(pair.cosine);
    }
    let rows = sqlx::query_file!(
        "src/sql/list_contradictions.sql",
        repository.uuid(),
        fact,
        &others,
        &differences,
        &cosines,
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    let found = rows.into_iter().map(|row| {
        Ok(Contradiction {
            fact: row.id.into(),
            text: row.text,
            difference: word("fact_contradictions.difference", &row.difference)?,
            cosine: row.cosine,
            state: word("contradiction_states.state", &row.state)?,
            retracted: false,
        })
    });
    found.collect()
}

/// Contradictions that nobody has said anything of, from before a place on, those of the newest facts first. Each pair of facts
/// is listed once, whichever of their duplicates it was found between.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_open", skip_all)]
pub async fn list_open(
    conn: &mut PgConnection,
    repository: RepositoryId,
    before: ContradictionPlace,
    limit: i64,
) -> Result<Vec<FoundContradiction>> {
    let rows = sqlx::query_file_as!(
        Row,
        "src/sql/list_open_contradictions.sql",
        repository.uuid(),
        before.0,
        before.1,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(FoundContradiction::try_from).collect()
}

/// Contradictions of which people say this, from before a place on, those of the newest facts first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_marked", skip_all)]
pub async fn list_marked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    state: ContradictionState,
    before: ContradictionPlace,
    limit: i64,
) -> Result<Vec<FoundContradiction>> {
    let rows = sqlx::query_file_as!(
        Row,
        "src/sql/list_marked_contradictions.sql",
        repository.uuid(),
        state.as_str(),
        before.0,
        before.1,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(FoundContradiction::try_from).collect()
}

/// The contradiction of two facts, or of those that they are duplicates of; whatever was said of it.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: (Uuid, Uuid),
) -> Result<Option<FoundContradiction>> {
    let row =
        sqlx::query_file_as!(Row, "src/sql/find_contradiction.sql", repository.uuid(), facts.0, facts.1,);
    row.fetch_optional(conn).await?.map(FoundContradiction::try_from).transpose()
}

/// Of facts, which are given by their numbers: their ids, how many sources each has, itself and through its duplicates, and when
/// the first and the last of these were published.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_sides", skip_all)]
pub async fn list_sides(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashMap<i64, Side>> {
    let rows = sqlx::query_file!("src/sql/list_contradiction_sides.sql", repository.uuid(), facts);
    let rows = rows.fetch_all(conn).await?.into_iter();
    let side = rows.map(|row| {
        let side = Side { id: row.id.into(), sources: row.sources, published: (row.first, row.last) };
        (row.no, side)
    });
    Ok(side.collect())
}

/// The first sources of facts, which are given by their numbers, and of their duplicates; so many of each.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_side_sources", skip_all)]
pub async fn list_side_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    limit: i64,
) -> Result<HashMap<i64, Vec<SideSource>>> {
    let rows = sqlx::query_file!("src/sql/list_side_sources.sql", repository.uuid(), facts, limit);
    let mut sources: HashMap<i64, Vec<SideSource>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let source = SideSource { id: row.id.into(), title: row.title, published_at: row.published_at };
        sources.entry(row.no).or_default().push(source);
    }
    Ok(sources)
}

/// What the sources of a fact tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    pub id: okt_model::FactId,
    pub sources: i64,
    pub published: (Option<NaiveDate>, Option<NaiveDate>),
}

struct Row {
    one: i64,
    other: i64,
    difference: String,
    cosine: f32,
    found_by: String,
    found_at: DateTime<Utc>,
    judged_by: Option<String>,
    confidence: Option<f32>,
    state: Option<String>,
    note: Option<String>,
    person: Option<Uuid>,
    decided_at: Option<DateTime<Utc>>,
    place: i64,
    other_place: i64,
}

impl TryFrom<Row> for FoundContradiction {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        let mark = match (row.state, row.decided_at) {
            (Some(state), Some(decided_at)) => Some(ContradictionMark {
                state: word("contradiction_states.state", &state)?,
                note: row.note,
                person: row.person.map(UserId::from),
                decided_at,
            }),
            _ => None,
        };
        Ok(Self {
            facts: (row.one.min(row.other), row.one.max(row.other)),
            difference: word("fact_contradictions.difference", &row.difference)?,
            cosine: row.cosine,
            found_by: word("fact_contradictions.found_by", &row.found_by)?,
            found_at: row.found_at,
            judged: row.judged_by.zip(row.confidence),
            mark,
            place: (row.place, row.other_place),
        })
    }
}
