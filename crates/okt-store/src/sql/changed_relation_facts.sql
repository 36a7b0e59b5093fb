-- Of facts that changed, and of those that they are duplicates of: the concepts that are counted and those that should be.
-- A fact counts once, for its duplicates too, and only while it is there to be seen.
WITH RECURSIVE concerned AS MATERIALIZED (
    SELECT n.no FROM unnest($2::bigint[]) AS n (no)
     UNION
    SELECT f.merged_into FROM okt_repository.facts f
     WHERE f.repository_id = $1 AND f.no = ANY ($2) AND f.merged_into IS NOT NULL),
canonical AS MATERIALIZED (
    SELECT f.no FROM concerned c
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = c.no AND f.status IN ('new', 'stable')),
links AS MATERIALIZED (
    SELECT c.no AS fact_no, l.concept_no
      FROM canonical c JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.fact_no = c.no
     UNION
    SELECT c.no, l.concept_no
      FROM canonical c
      JOIN okt_repository.facts d ON d.repository_id = $1 AND d.merged_into = c.no
      JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.fact_no = d.no),
led AS (
    SELECT p.no AS member, p.no, p.merged_into
      FROM (SELECT DISTINCT concept_no FROM links) AS n
      JOIN okt_repository.concepts p ON p.repository_id = $1 AND p.no = n.concept_no
     UNION ALL
    SELECT l.member, p.no, p.merged_into
      FROM led l
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS p),
wanted AS (
    SELECT n.fact_no, array_agg(DISTINCT l.no ORDER BY l.no) AS concepts
      FROM links n JOIN led l ON l.member = n.concept_no AND l.merged_into IS NULL
     GROUP BY n.fact_no)
SELECT c.no AS "no!", coalesce(r.concepts, '{}') AS "counted!", coalesce(w.concepts, '{}') AS "wanted!"
  FROM concerned c
  LEFT JOIN wanted w ON w.fact_no = c.no
  LEFT JOIN okt_repository.relation_facts r ON r.repository_id = $1 AND r.fact_no = c.no
 WHERE r.concepts IS DISTINCT FROM w.concepts
