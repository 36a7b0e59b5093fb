-- Of facts that are to be linked: the concepts that they are not to be linked to, as they are part of others now. A person parted
-- them, the fact itself or one that says the same, and may have said what it speaks of instead; or a concept that was merged
-- has the link already, and it is read as the other's.
WITH RECURSIVE canonical AS MATERIALIZED (
    SELECT f.no AS fact_no, CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS no
      FROM okt_repository.facts f
     WHERE f.repository_id = $1 AND f.no = ANY ($2)
       -- Most repositories have none. The first one by the index: EXISTS may walk along those of all others.
       AND (SELECT r.concept_no FROM okt_repository.rejected_links r
             WHERE r.repository_id = $1 ORDER BY r.content_hash LIMIT 1) IS NOT NULL),
hashes AS MATERIALIZED (
    SELECT c.fact_no, f.content_hash
      FROM canonical c JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = c.no
     UNION ALL
    SELECT c.fact_no, f.content_hash
      FROM canonical c JOIN okt_repository.facts f ON f.repository_id = $1 AND f.merged_into = c.no),
found AS MATERIALIZED (
    SELECT h.fact_no, r.concept_no, true AS rejected, r.instead_no
      FROM hashes h
      JOIN okt_repository.rejected_links r ON r.repository_id = $1 AND r.content_hash = h.content_hash
     UNION ALL
    SELECT l.fact_no, l.concept_no, false, NULL
      FROM okt_repository.fact_concepts l
      CROSS JOIN LATERAL (SELECT FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.concept_no AND o.merged_into IS NOT NULL OFFSET 0) AS o
     WHERE l.repository_id = $1 AND l.fact_no = ANY ($2)),
led AS (
    SELECT f.fact_no, f.rejected, f.instead_no, p.no, p.merged_into
      FROM found f
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = f.concept_no OFFSET 0) AS p
     UNION
    SELECT l.fact_no, l.rejected, l.instead_no, p.no, p.merged_into
      FROM led l
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS p)
SELECT DISTINCT ON (l.fact_no, l.no) l.fact_no AS "fact_no!", l.no AS "root!",
       (SELECT i.id FROM okt_repository.concepts i WHERE i.repository_id = $1 AND i.no = l.instead_no) AS instead
  FROM led l
 WHERE l.merged_into IS NULL
 -- What is linked needs nothing instead; of several splits the last one holds.
 ORDER BY l.fact_no, l.no, l.rejected, l.instead_no DESC NULLS LAST
