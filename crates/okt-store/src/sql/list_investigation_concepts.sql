-- Concepts that the facts of the newest sources of an investigation speak of, by so many links of these to facts. Which concepts
-- a fact speaks of is read from what is counted, one row for a fact, so that these counts and those of concepts agree.
WITH sources AS MATERIALIZED (
    SELECT source_no FROM okt_repository.investigation_sources
     WHERE repository_id = $1 AND investigation_no = $2
     ORDER BY source_no DESC),
canonical AS MATERIALIZED (
    SELECT DISTINCT CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS no
      -- Without an order of its own, so that no more are read than are wanted.
      FROM (SELECT l.fact_no
              FROM sources s
             CROSS JOIN LATERAL (SELECT o.fact_no FROM okt_repository.fact_sources o
                                  WHERE o.repository_id = $1 AND o.source_no = s.source_no OFFSET 0) AS l
             LIMIT $3) AS l
     CROSS JOIN LATERAL (SELECT o.no, o.merged_into FROM okt_repository.facts o
                          WHERE o.repository_id = $1 AND o.no = l.fact_no OFFSET 0) AS f)
SELECT c.id, c.no, c.canonical_name, x.label, n.fact_count AS "fact_count!"
  FROM (SELECT r.concept_no, count(*) AS fact_count
          FROM canonical f
          -- Not those that were rejected a moment ago.
         CROSS JOIN LATERAL (SELECT o.no FROM okt_repository.facts o
                              WHERE o.repository_id = $1 AND o.no = f.no AND o.status IN ('new', 'stable') OFFSET 0) AS k
         CROSS JOIN LATERAL (SELECT unnest(o.concepts) AS concept_no FROM okt_repository.relation_facts o
                              WHERE o.repository_id = $1 AND o.fact_no = k.no OFFSET 0) AS r
         GROUP BY r.concept_no
        HAVING (count(*), r.concept_no) < ($4::bigint, $5::bigint)) AS n
  -- Nor concepts that were merged or deleted a moment ago.
 CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                      WHERE o.repository_id = $1 AND o.no = n.concept_no AND o.merged_into IS NULL OFFSET 0) AS c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 ORDER BY n.fact_count DESC, c.no DESC
 LIMIT $6
