-- Links that are there and were found in a less trusted way.
WITH RECURSIVE led AS (
    SELECT p.id, p.no, p.merged_into FROM okt_repository.concepts p
     WHERE p.repository_id = $1 AND p.id = ANY ($2::uuid[])
     UNION
    SELECT l.id, p.no, p.merged_into
      FROM led l
     CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                          WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS p),
wanted AS MATERIALIZED (
    SELECT l.no AS concept_no, n.fact_no, max(n.found_by) AS found_by
      FROM unnest($2::uuid[], $3::bigint[], $4::smallint[]) AS n (concept, fact_no, found_by)
      JOIN led l ON l.id = n.concept AND l.merged_into IS NULL
     GROUP BY l.no, n.fact_no)
UPDATE okt_repository.fact_concepts l SET found_by = w.found_by
  FROM wanted w
 WHERE l.repository_id = $1 AND l.concept_no = w.concept_no AND l.fact_no = w.fact_no AND l.found_by < w.found_by
