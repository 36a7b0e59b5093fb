-- The fact leaves its canonical fact, with the duplicates that it had before it was merged.
WITH RECURSIVE undone AS (
    UPDATE okt_repository.fact_merges SET undone_at = clock_timestamp(), undone_by = $3
     WHERE repository_id = $1 AND fact_no = $2 AND undone_at IS NULL),
behind AS (
    SELECT $2::bigint AS no
     UNION
    SELECT m.fact_no FROM okt_repository.fact_merges m JOIN behind b ON m.into_no = b.no
     WHERE m.repository_id = $1 AND m.undone_at IS NULL)
UPDATE okt_repository.facts f
   SET merged_into = CASE WHEN f.no = $2 THEN NULL ELSE $2 END,
       -- The vectors of duplicates are not kept.
       embedded_in = NULL,
       status = CASE WHEN f.no = $2 THEN 'stable' ELSE 'duplicate' END
 WHERE f.repository_id = $1 AND f.no IN (SELECT no FROM behind)
