-- Sources of the facts of a concept and of those that were merged into it, those that make the most of them first.
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
                          WHERE o.repository_id = $1 AND o.fact_no = d.no OFFSET 0) AS s)
SELECT s.id, s.no, s.title, s.url, s.published_at, n.fact_count AS "fact_count!"
  FROM (SELECT source_no, count(*) AS fact_count FROM said
         GROUP BY source_no
        HAVING (count(*), source_no) < ($4::bigint, $5::bigint)
         ORDER BY count(*) DESC, source_no DESC
         LIMIT $6) AS n
 CROSS JOIN LATERAL (SELECT * FROM okt_repository.sources o
                      WHERE o.repository_id = $1 AND o.no = n.source_no OFFSET 0) AS s
 ORDER BY n.fact_count DESC, s.no DESC
