-- What follows from what is counted for every fact; only what differs is written.
WITH wanted AS MATERIALIZED (
    SELECT one.no AS concept_no, other.no AS other_no, count(*) AS shared_fact_count
      FROM okt_repository.relation_facts r, unnest(r.concepts) AS one (no), unnest(r.concepts) AS other (no)
     WHERE r.repository_id = $1 AND one.no <> other.no
     GROUP BY one.no, other.no),
gone AS (
    DELETE FROM okt_repository.concept_relations r
     WHERE r.repository_id = $1
       AND NOT EXISTS (SELECT FROM wanted w WHERE w.concept_no = r.concept_no AND w.other_no = r.other_no)
    RETURNING r.concept_no),
written AS (
    INSERT INTO okt_repository.concept_relations (repository_id, concept_no, other_no, shared_fact_count)
    SELECT $1, w.concept_no, w.other_no, w.shared_fact_count
      FROM wanted w
      LEFT JOIN okt_repository.concept_relations r
        ON r.repository_id = $1 AND r.concept_no = w.concept_no AND r.other_no = w.other_no
     WHERE r.shared_fact_count IS DISTINCT FROM w.shared_fact_count
     -- In the order of the key, so that its pages are written one after the other.
     ORDER BY w.concept_no, w.other_no
    ON CONFLICT (repository_id, concept_no, other_no) DO UPDATE SET shared_fact_count = excluded.shared_fact_count
    RETURNING concept_no)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM written) AS "count!"
