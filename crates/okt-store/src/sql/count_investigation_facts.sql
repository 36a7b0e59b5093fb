-- The facts of the newest sources of an investigation, each once, by so many of their links.
WITH sources AS MATERIALIZED (
    SELECT source_no FROM okt_repository.investigation_sources
     WHERE repository_id = $1 AND investigation_no = $2
     ORDER BY source_no DESC),
links AS MATERIALIZED (
    -- Without an order of its own, so that no more are read than are wanted.
    SELECT l.fact_no
      FROM sources s
     CROSS JOIN LATERAL (SELECT o.fact_no FROM okt_repository.fact_sources o
                          WHERE o.repository_id = $1 AND o.source_no = s.source_no OFFSET 0) AS l
     LIMIT $3)
SELECT (SELECT count(*) FROM links) AS "links!",
       (SELECT count(DISTINCT c.no)
          FROM links l
         CROSS JOIN LATERAL (SELECT CASE WHEN o.merged_into IS NULL THEN o.no ELSE o.merged_into END AS no
                               FROM okt_repository.facts o
                              WHERE o.repository_id = $1 AND o.no = l.fact_no OFFSET 0) AS f
         CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.facts o
                              WHERE o.repository_id = $1 AND o.no = f.no AND o.status IN ('new', 'stable') OFFSET 0) AS c)
       AS "facts!"
