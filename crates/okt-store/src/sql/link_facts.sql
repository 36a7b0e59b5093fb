-- Links to the concepts that these are part of now, and the facts that they are new for.
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
     GROUP BY l.no, n.fact_no),
inserted AS (
    INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no, found_by, import_no)
    SELECT $1, w.concept_no, w.fact_no, w.found_by, $5::bigint FROM wanted w
     ORDER BY w.concept_no, w.fact_no
    ON CONFLICT (repository_id, concept_no, fact_no) DO NOTHING
    RETURNING fact_no),
marked AS (
    INSERT INTO okt_repository.relation_changes (repository_id, fact_no)
    SELECT DISTINCT $1::uuid, i.fact_no FROM inserted i)
SELECT (SELECT count(*) FROM inserted) AS "inserted!", (SELECT count(*) FROM wanted) AS "wanted!",
       (SELECT count(DISTINCT n) FROM unnest($2::uuid[]) AS n) = (SELECT count(DISTINCT l.id) FROM led l) AS "all_there!"
