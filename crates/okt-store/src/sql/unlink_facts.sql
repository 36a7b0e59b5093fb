-- Takes facts away from a concept and from all that were merged into it.
WITH RECURSIVE members AS (
    SELECT $2::bigint AS no
     UNION
    SELECT p.no FROM members m
    CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                         WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p),
gone AS (
    DELETE FROM okt_repository.fact_concepts l
     USING members m
     WHERE l.repository_id = $1 AND l.concept_no = m.no AND l.fact_no = ANY ($3::bigint[])
    RETURNING l.fact_no),
marked AS (
    INSERT INTO okt_repository.relation_changes (repository_id, fact_no)
    SELECT DISTINCT $1::uuid, g.fact_no FROM gone g)
SELECT DISTINCT g.fact_no FROM gone g ORDER BY 1
