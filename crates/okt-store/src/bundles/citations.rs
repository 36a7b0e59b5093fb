//! Citations of a bundle: what they name the facts of its producer by becomes what these are called here.

use std::collections::{HashMap, HashSet};

use okt_interchange::bundle::hash::{Cited, rewrite_facts, rewrite_images};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use okt_pg::Result;

const PAGE: i64 = 200;

/// Rewrites the texts of a temporary table; returns how many citations lost their link. `keep` leaves them as they are instead.
pub(super) async fn rewrite(
    conn: &mut PgConnection,
    table: &str,
    key: &str,
    column: &str,
    keep: bool,
) -> Result<u64> {
    let (mut after, mut lost) = (-1, 0);
    loop {
        let page = format!(
            "SELECT {key}, {column} FROM {table}
              WHERE {key} > $1 AND ({column} LIKE '%](<fact:%' OR {column} LIKE '%](<image:%') ORDER BY {key} LIMIT $2"
        );
        let page: Vec<(i32, String)> =
            sqlx::query_as(AssertSqlSafe(page)).bind(after).bind(PAGE).fetch_all(&mut *conn).await?;
        let Some((end, _)) = page.last() else { return Ok(lost) };
        after = *end;
        let mut wanted = HashSet::new();
        for (_, text) in &page {
            rewrite_facts(text, |id| {
                wanted.insert(id);
                Cited::Left
            });
            rewrite_images(text, |id| {
                wanted.insert(id);
                Cited::Left
            });
        }
        let wanted: Vec<Uuid> = wanted.into_iter().collect();
        let facts = sqlx::query_as(
            "SELECT t.uuid, m.id FROM t_facts t JOIN m_facts m ON m.idx = t.idx WHERE t.uuid = ANY ($1)",
        );
        let facts: Vec<(Uuid, Uuid)> = facts.bind(&wanted).fetch_all(&mut *conn).await?;
        let facts: HashMap<Uuid, Uuid> = facts.into_iter().collect();
        let images = sqlx::query_as(
            "SELECT n.uuid, i.id FROM t_syntheses t
              CROSS JOIN LATERAL unnest(t.image_uuids, t.images) AS n (uuid, idx)
               JOIN m_images i ON i.idx = n.idx
              WHERE n.uuid = ANY ($1)",
        );
        let images: Vec<(Uuid, Uuid)> = images.bind(&wanted).fetch_all(&mut *conn).await?;
        let images: HashMap<Uuid, Uuid> = images.into_iter().collect();
        let mut named = |known: &HashMap<Uuid, Uuid>, id| match known.get(&id) {
            Some(here) => Cited::As(here.to_string()),
            None if keep => Cited::Left,
            None => {
                lost += 1;
                Cited::Lost
            }
        };
        let (mut keys, mut texts) = (Vec::new(), Vec::new());
        for (key, text) in page {
            let text = rewrite_facts(&text, |id| named(&facts, id));
            keys.push(key);
            texts.push(rewrite_images(&text, |id| named(&images, id)));
        }
        let update = format!(
            "UPDATE {table} t SET {column} = n.text FROM unnest($1::integer[], $2::text[]) AS n (key, text) WHERE t.{key} = n.key"
        );
        sqlx::query(AssertSqlSafe(update)).bind(&keys).bind(&texts).execute(&mut *conn).await?;
    }
}
