-- Those of these facts, by their numbers, all of whose sources are marked alike. A duplicate has the sources of its canonical fact.
SELECT n.no AS "no!", min(m.kind) AS "kind!"
  FROM unnest($2::bigint[]) AS n (no)
 CROSS JOIN LATERAL (SELECT CASE WHEN o.merged_into IS NULL THEN o.no ELSE o.merged_into END AS no
                       FROM okt_repository.facts o
                      WHERE o.repository_id = $1 AND o.no = n.no OFFSET 0) AS c
 CROSS JOIN LATERAL (SELECT c.no
                      UNION ALL
                     SELECT d.no FROM okt_repository.facts d
                      WHERE d.repository_id = $1 AND d.merged_into = c.no) AS a (no)
 CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                      WHERE o.repository_id = $1 AND o.fact_no = a.no OFFSET 0) AS l
  LEFT JOIN LATERAL (SELECT o.kind FROM okt_repository.source_marks o
                      WHERE o.repository_id = $1 AND o.source_no = l.source_no OFFSET 0) AS m ON true
 -- Looked at once: most repositories have no marks, and then nothing else is read.
 WHERE (SELECT k.source_no FROM okt_repository.source_marks k
         WHERE k.repository_id = $1 AND k.kind IS NOT NULL ORDER BY k.source_no LIMIT 1) IS NOT NULL
 GROUP BY n.no
HAVING count(m.kind) = count(*) AND min(m.kind) = max(m.kind)
