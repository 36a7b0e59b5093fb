-- Facts, those that they are duplicates of, and all duplicates of these.
WITH canonical AS MATERIALIZED (
    SELECT CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END AS no
      FROM okt_repository.facts f
     WHERE f.repository_id = $1 AND f.id = ANY ($2)),
grouped AS MATERIALIZED (
    SELECT c.no FROM canonical c
     UNION
    SELECT f.no FROM canonical c JOIN okt_repository.facts f ON f.repository_id = $1 AND f.merged_into = c.no)
SELECT f.no, f.id, f.content_hash, f.merged_into
  FROM okt_repository.facts f
 WHERE f.repository_id = $1 AND f.no = ANY (ARRAY(SELECT g.no FROM grouped g))
 ORDER BY f.content_hash
   FOR UPDATE OF f
