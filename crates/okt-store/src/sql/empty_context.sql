-- One statement sees one moment, so each part names the rows that the others leave alone.
WITH twins AS MATERIALIZED (
    SELECT b.no, t.no AS twin
      FROM okt_repository.concepts b
      JOIN okt_repository.concepts t
        ON t.repository_id = $1 AND lower(t.canonical_name) = lower(b.canonical_name)
       AND t.context_no = $3 AND t.merged_into IS NULL
     WHERE b.repository_id = $1 AND b.no = ANY ($2::bigint[])),
unlinked AS (
    DELETE FROM okt_repository.fact_concepts l
     USING twins t
     WHERE l.repository_id = $1 AND l.concept_no = t.no
    RETURNING t.twin, l.fact_no),
linked AS (
    INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
    SELECT $1, twin, fact_no FROM unlinked
    ON CONFLICT DO NOTHING),
merged AS (
    UPDATE okt_repository.concepts c SET merged_into = t.twin
      FROM twins t
     WHERE c.repository_id = $1 AND c.no = t.no
    RETURNING c.no),
moved AS (
    UPDATE okt_repository.concepts c SET context_no = $3
     WHERE c.repository_id = $1 AND c.no = ANY ($2) AND c.no NOT IN (SELECT no FROM twins)
    RETURNING c.no)
SELECT (SELECT count(*) FROM moved) AS "moved!", (SELECT count(*) FROM merged) AS "merged!"
