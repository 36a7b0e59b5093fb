-- Concepts that are not merged, from after a number on, with their other names: those of concepts that were merged into them too.
WITH RECURSIVE page AS MATERIALIZED (
    SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, c.description, c.unmapped_label, c.fact_count, c.created_at
      FROM okt_repository.concepts c
     WHERE c.repository_id = $1 AND c.no > $2 AND c.merged_into IS NULL AND c.created_at <= $3
     ORDER BY c.no LIMIT $4),
members AS (
    SELECT p.no AS root, p.no, p.canonical_name, p.name_key FROM page p
     UNION
    SELECT m.root, c.no, c.canonical_name, c.name_key
      FROM members m
     CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                          WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
SELECT p.id AS "id!", p.no AS "no!", p.canonical_name AS "canonical_name!", p.name_key AS "name_key!",
       p.context_no AS "context_no!", x.label, x.ontology_class, p.description, p.unmapped_label,
       p.fact_count AS "fact_count!", p.created_at AS "created_at!",
       ARRAY(SELECT min(a.alias)
               FROM (SELECT o.alias_key AS key, o.alias
                       FROM members m
                      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concept_aliases l
                                           WHERE l.repository_id = $1 AND l.concept_no = m.no OFFSET 0) AS o
                      WHERE m.root = p.no
                      UNION ALL
                     SELECT m.name_key, m.canonical_name FROM members m WHERE m.root = p.no) AS a
              WHERE a.key <> p.name_key
              GROUP BY a.key ORDER BY a.key LIMIT 1000) AS "aliases!: Vec<String>"
  FROM page p
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = p.context_no
 ORDER BY p.no
