-- Of facts, which are given by their numbers: how many sources each has, itself and through its duplicates, and how many of them
-- are marked. Only those with a marked source.
SELECT n.no AS "no!", count(DISTINCT l.source_no) AS "sources!",
       count(DISTINCT l.source_no) FILTER (WHERE m.kind = 'retracted') AS "retracted!",
       count(DISTINCT l.source_no) FILTER (WHERE m.kind = 'superseded') AS "superseded!"
  FROM unnest($2::bigint[]) AS n (no)
 CROSS JOIN LATERAL (SELECT n.no
                      UNION ALL
                     SELECT d.no FROM okt_repository.facts d
                      WHERE d.repository_id = $1 AND d.merged_into = n.no) AS a (no)
 CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                      WHERE o.repository_id = $1 AND o.fact_no = a.no OFFSET 0) AS l
  LEFT JOIN LATERAL (SELECT o.kind FROM okt_repository.source_marks o
                      WHERE o.repository_id = $1 AND o.source_no = l.source_no OFFSET 0) AS m ON true
 -- Looked at once: most repositories have no marks, and then nothing else is read.
 WHERE (SELECT k.source_no FROM okt_repository.source_marks k
         WHERE k.repository_id = $1 AND k.kind IS NOT NULL ORDER BY k.source_no LIMIT 1) IS NOT NULL
 GROUP BY n.no
HAVING count(m.kind) > 0
