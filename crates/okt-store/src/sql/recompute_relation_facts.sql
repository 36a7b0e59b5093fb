-- What should be counted for every fact; only what differs is written.
WITH RECURSIVE led AS (
    SELECT p.no AS member, p.no, p.merged_into FROM okt_repository.concepts p WHERE p.repository_id = $1
     UNION ALL
    SELECT l.member, p.no, p.merged_into
      FROM led l JOIN okt_repository.concepts p ON p.repository_id = $1 AND p.no = l.merged_into
     WHERE l.merged_into IS NOT NULL),
wanted AS MATERIALIZED (
    SELECT coalesce(f.merged_into, f.no) AS fact_no, array_agg(DISTINCT l.no ORDER BY l.no) AS concepts
      FROM okt_repository.fact_concepts n
      JOIN led l ON l.member = n.concept_no AND l.merged_into IS NULL
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.fact_no
      JOIN okt_repository.facts c
        ON c.repository_id = $1 AND c.no = coalesce(f.merged_into, f.no) AND c.status IN ('new', 'stable')
     WHERE n.repository_id = $1
     GROUP BY coalesce(f.merged_into, f.no)),
gone AS (
    DELETE FROM okt_repository.relation_facts r
     WHERE r.repository_id = $1 AND NOT EXISTS (SELECT FROM wanted w WHERE w.fact_no = r.fact_no)
    RETURNING r.fact_no),
written AS (
    INSERT INTO okt_repository.relation_facts (repository_id, fact_no, concepts)
    SELECT $1, w.fact_no, w.concepts
      FROM wanted w
      LEFT JOIN okt_repository.relation_facts r ON r.repository_id = $1 AND r.fact_no = w.fact_no
     WHERE r.concepts IS DISTINCT FROM w.concepts
    ON CONFLICT (repository_id, fact_no) DO UPDATE SET concepts = excluded.concepts
    RETURNING fact_no),
-- They are compared with what is near them.
noted AS (
    INSERT INTO okt_repository.unchecked_facts (repository_id, fact_no) SELECT $1, w.fact_no FROM written w)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM written) AS "count!"
