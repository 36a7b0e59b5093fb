-- For the concepts that these are part of now; a concept's own name is no alias of it. Machines do not give a concept a name
-- that a person took away from it, nor one that it has through a concept that was merged into it.
WITH RECURSIVE led AS (
    SELECT p.id, p.no, p.merged_into, p.name_key FROM okt_repository.concepts p
     WHERE p.repository_id = $1 AND p.id = ANY ($2::uuid[])
     UNION
    SELECT l.id, p.no, p.merged_into, p.name_key
      FROM led l
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS p),
told AS (
    SELECT n.key, p.no, p.merged_into
      FROM (SELECT r.alias_key AS key, r.concept_no FROM okt_repository.rejected_aliases r
             WHERE r.repository_id = $1 AND r.alias_key = ANY ($3::text[])
             UNION
            SELECT a.alias_key, a.concept_no FROM okt_repository.concept_aliases a
             WHERE a.repository_id = $1 AND a.alias_key = ANY ($3)) AS n
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = n.concept_no OFFSET 0) AS p
     UNION
    SELECT t.key, p.no, p.merged_into
      FROM told t
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = t.merged_into OFFSET 0) AS p),
wanted AS MATERIALIZED (
    SELECT DISTINCT ON (l.no, n.key) l.no AS concept_no, n.key, n.alias, n.added_by
      FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS n (concept, key, alias, added_by, at)
      JOIN led l ON l.id = n.concept AND l.merged_into IS NULL AND l.name_key <> n.key
     WHERE n.added_by = 'person' OR NOT EXISTS (SELECT FROM told t WHERE t.no = l.no AND t.key = n.key)
     ORDER BY l.no, n.key, n.added_by = 'person' DESC, n.at),
inserted AS (
    INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
    SELECT $1, w.concept_no, w.key, w.alias, w.added_by FROM wanted w
    ON CONFLICT (repository_id, concept_no, alias_key) DO NOTHING
    RETURNING concept_no),
said AS (
    UPDATE okt_repository.concept_aliases a SET added_by = w.added_by
      FROM wanted w
     WHERE a.repository_id = $1 AND a.concept_no = w.concept_no AND a.alias_key = w.key
       AND w.added_by = 'person' AND a.added_by <> 'person')
SELECT count(*) AS "count!" FROM inserted
