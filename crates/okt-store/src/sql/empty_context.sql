-- One statement sees one moment, so each part names the rows that the others leave alone. Links stay with the concepts that
-- they were made for: whoever reads them follows merged_into.
WITH twins AS MATERIALIZED (
    SELECT b.no, t.no AS twin
      FROM okt_repository.concepts b
      JOIN okt_repository.concepts t
        ON t.repository_id = $1 AND t.name_key = b.name_key AND t.context_no = $3 AND t.merged_into IS NULL
     WHERE b.repository_id = $1 AND b.no = ANY ($2::bigint[]) AND b.merged_into IS NULL),
merged AS (
    UPDATE okt_repository.concepts c SET merged_into = t.twin, context_no = $3
      FROM twins t
     WHERE c.repository_id = $1 AND c.no = t.no
    RETURNING c.no),
moved AS (
    UPDATE okt_repository.concepts c SET context_no = $3
     WHERE c.repository_id = $1 AND c.no = ANY ($2) AND c.no NOT IN (SELECT no FROM twins)
    RETURNING c.merged_into)
SELECT (SELECT count(*) FROM moved WHERE merged_into IS NULL) AS "moved!",
       (SELECT count(*) FROM moved WHERE merged_into IS NOT NULL) AS "followed!",
       ARRAY(SELECT no FROM merged) AS "merged!"
