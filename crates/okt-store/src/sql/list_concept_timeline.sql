-- Facts of a concept and of those that were merged into it, by the earliest date that a source of theirs was published; after them
-- those of which none says so, by when it was fetched.
WITH RECURSIVE members AS (
    SELECT $2::bigint AS no
     UNION
    SELECT p.no FROM members m
    CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                         WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p),
-- Of its newest links so many; each fact once, as the canonical fact.
canonical AS MATERIALIZED (
    SELECT DISTINCT c.no
      FROM (SELECT l.fact_no FROM members m
             CROSS JOIN LATERAL (SELECT o.fact_no FROM okt_repository.fact_concepts o
                                  WHERE o.repository_id = $1 AND o.concept_no = m.no
                                  ORDER BY o.fact_no DESC LIMIT $3) AS l
             ORDER BY l.fact_no DESC LIMIT $3) AS l
     CROSS JOIN LATERAL (SELECT CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS no
                           FROM okt_repository.facts f
                          WHERE f.repository_id = $1 AND f.no = l.fact_no OFFSET 0) AS f
     CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.facts o
                          WHERE o.repository_id = $1 AND o.no = f.no AND o.status IN ('new', 'stable') OFFSET 0) AS c),
-- Its own sources and those of its duplicates.
said AS (
    SELECT c.no AS fact_no, s.source_no
      FROM canonical c
     CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                          WHERE o.repository_id = $1 AND o.fact_no = c.no OFFSET 0) AS s
     UNION
    SELECT c.no, s.source_no
      FROM canonical c
     CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.facts o
                          WHERE o.repository_id = $1 AND o.merged_into = c.no OFFSET 0) AS d
     CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                          WHERE o.repository_id = $1 AND o.fact_no = d.no OFFSET 0) AS s),
dated AS (
    SELECT DISTINCT ON (d.fact_no) d.fact_no, d.source_id, d.late, d.date
      FROM (SELECT n.fact_no, s.id AS source_id, s.no,
                   CASE WHEN s.published_at IS NULL THEN 1 ELSE 0 END AS late,
                   coalesce(s.published_at, (coalesce(s.fetched_at, s.created_at) AT TIME ZONE 'UTC')::date) AS date
              FROM said n
             CROSS JOIN LATERAL (SELECT * FROM okt_repository.sources o
                                  WHERE o.repository_id = $1 AND o.no = n.source_no OFFSET 0) AS s) AS d
     ORDER BY d.fact_no, d.late, d.date, d.no),
page AS (
    SELECT * FROM dated d
     WHERE (d.late, d.date, d.fact_no) > ($4::integer, $5::date, $6::bigint)
     ORDER BY d.late, d.date, d.fact_no
     LIMIT $7)
SELECT p.source_id AS "source_id!", p.late AS "late!", p.date AS "date!", f.id, f.no, f.text, f.content_hash, f.kind, f.status,
       f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to
  FROM page p
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = p.fact_no
 ORDER BY p.late, p.date, p.fact_no
