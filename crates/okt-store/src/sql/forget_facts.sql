-- Deletes what refers to deleted facts. Facts that were merged into one of them stay with their canonical fact.
WITH concepts AS (DELETE FROM okt_repository.fact_concepts WHERE repository_id = $1 AND fact_no = ANY ($2)),
readings AS (DELETE FROM okt_repository.concept_readings WHERE repository_id = $1 AND fact_no = ANY ($2)),
summaries AS (DELETE FROM okt_repository.summary_facts WHERE repository_id = $1 AND fact_no = ANY ($2)),
contradictions AS (
    DELETE FROM okt_repository.fact_contradictions
     WHERE repository_id = $1 AND (fact_no = ANY ($2) OR other_no = ANY ($2))),
judgements AS (
    DELETE FROM okt_repository.fact_judgements
     WHERE repository_id = $1 AND (fact_no = ANY ($2) OR other_no = ANY ($2))),
later AS (
    UPDATE okt_repository.fact_merges m SET into_no = f.merged_into
      FROM okt_repository.facts f
     WHERE m.repository_id = $1 AND m.into_no = ANY ($2) AND f.repository_id = $1 AND f.no = m.fact_no
       AND m.undone_at IS NULL AND f.merged_into IS NOT NULL)
DELETE FROM okt_repository.fact_merges m
 WHERE m.repository_id = $1 AND (m.fact_no = ANY ($2) OR (m.into_no = ANY ($2) AND m.undone_at IS NOT NULL))
