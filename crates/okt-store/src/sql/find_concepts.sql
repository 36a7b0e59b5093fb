-- Names in contexts: first the concept of that name, then one that was merged or called otherwise and had it, then one with
-- that alias; each as the concept that it is part of now. Keys and labels are taken apart first, so that what is joined to a table is a plain
-- column: under row-level security nothing else is a condition of an index.
WITH RECURSIVE wanted AS MATERIALIZED (
    SELECT n.at, n.key, x.no AS context_no, x.later
      FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS n (key, label, at)
      JOIN okt_repository.contexts c ON c.repository_id = $1 AND lower(c.label) = lower(n.label)
      -- Where a context is becoming a part of another one, that one's concept is there to stay.
     CROSS JOIN LATERAL (SELECT c.no, c.merging_into IS NOT NULL UNION ALL SELECT c.merging_into, false) AS x (no, later)
     WHERE x.no IS NOT NULL),
found AS (
    SELECT w.at, p.no, p.merged_into, CASE WHEN w.later THEN 2 ELSE 1 END AS rank
      FROM wanted w
      JOIN okt_repository.concepts p
        ON p.repository_id = $1 AND p.name_key = w.key AND p.context_no = w.context_no AND p.merged_into IS NULL
     UNION ALL
    SELECT w.at, p.no, p.merged_into, 3
      FROM wanted w
      JOIN okt_repository.concepts p
        ON p.repository_id = $1 AND p.context_no = w.context_no AND p.name_key = w.key AND p.merged_into IS NOT NULL
     UNION ALL
    SELECT w.at, p.no, p.merged_into, 3
      FROM wanted w
      JOIN okt_repository.former_names n ON n.repository_id = $1 AND n.context_no = w.context_no AND n.name_key = w.key
      JOIN okt_repository.concepts p ON p.repository_id = $1 AND p.no = n.concept_no
     UNION ALL
    SELECT w.at, p.no, p.merged_into, 4
      FROM wanted w
      JOIN okt_repository.concept_aliases a ON a.repository_id = $1 AND a.alias_key = w.key
      JOIN okt_repository.concepts p ON p.repository_id = $1 AND p.no = a.concept_no),
led AS (
    SELECT at, no, merged_into, rank FROM found
     UNION
    SELECT l.at, p.no, p.merged_into, l.rank
      FROM led l
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS p)
SELECT DISTINCT ON (l.at) l.at AS "at!", p.id
  FROM led l
  JOIN okt_repository.concepts p ON p.repository_id = $1 AND p.no = l.no
 WHERE l.merged_into IS NULL
   -- An alias holds in the context of its concept.
   AND (l.rank < 4 OR EXISTS (SELECT FROM wanted w WHERE w.at = l.at AND w.context_no = p.context_no))
 ORDER BY l.at, l.rank, p.fact_count DESC, p.no
