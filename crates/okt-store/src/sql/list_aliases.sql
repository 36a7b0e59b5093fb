WITH RECURSIVE members AS (
    SELECT c.no, c.canonical_name, c.name_key FROM okt_repository.concepts c WHERE c.repository_id = $1 AND c.no = $2
     UNION
    SELECT c.no, c.canonical_name, c.name_key
      FROM members m
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
SELECT n.alias AS "alias!", n.added_by
  FROM (SELECT DISTINCT ON (a.key) a.key, a.alias, a.added_by
          FROM (SELECT o.alias_key AS key, o.alias, o.added_by
                  FROM members m
                  JOIN okt_repository.concept_aliases o ON o.repository_id = $1 AND o.concept_no = m.no
                 UNION ALL
                SELECT m.name_key, m.canonical_name, NULL FROM members m WHERE m.no <> $2) AS a
         -- A name that a concept was merged with may be an alias, or even the name, of the other.
         WHERE a.key <> (SELECT m.name_key FROM members m WHERE m.no = $2)
         ORDER BY a.key, a.added_by = 'person' DESC NULLS LAST) AS n
 ORDER BY n.key
 LIMIT $3
