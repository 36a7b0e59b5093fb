-- The sources of facts, which are given by their numbers in ascending order, from after a place on. A source that says a fact in
-- two ways is there once, with the sentences of both.
SELECT l.fact_no AS "fact_no!", f.id AS "fact_id!", s.no AS "source_no!", s.id, s.title, s.author, s.site_name, s.url, s.doi,
       s.published_at, s.created_at, m.kind AS "mark?",
       ARRAY(SELECT t.sentences[2 * i + 1] FROM unnest(l.sentences) AS i ORDER BY i) AS "starts!: Vec<Option<i32>>",
       ARRAY(SELECT t.sentences[2 * i + 2] FROM unnest(l.sentences) AS i ORDER BY i) AS "ends!: Vec<Option<i32>>",
       -- What they say, cut out here so that no whole text travels.
       CASE WHEN $6 THEN
            ARRAY(SELECT substring(t.text FROM t.sentences[2 * i + 1] + 1
                                    FOR greatest(t.sentences[2 * i + 2] - t.sentences[2 * i + 1], 0))
                    FROM unnest(l.sentences) AS i ORDER BY i)
       ELSE '{}' END AS "quotes!: Vec<Option<String>>"
  FROM (SELECT n.no AS fact_no, o.source_no,
               coalesce(array_agg(DISTINCT i) FILTER (WHERE i IS NOT NULL), '{}') AS sentences
          FROM unnest($2::bigint[]) AS n (no)
         CROSS JOIN LATERAL (SELECT n.no
                              UNION ALL
                             SELECT d.no FROM okt_repository.facts d
                              WHERE d.repository_id = $1 AND d.merged_into = n.no) AS a (no)
         CROSS JOIN LATERAL (SELECT g.source_no, g.sentences FROM okt_repository.fact_sources g
                              WHERE g.repository_id = $1 AND g.fact_no = a.no OFFSET 0) AS o
          LEFT JOIN LATERAL unnest(o.sentences) AS i ON true
         WHERE (n.no, o.source_no) > ($3, $4)
         GROUP BY n.no, o.source_no
         ORDER BY n.no, o.source_no
         LIMIT $5) AS l
 CROSS JOIN LATERAL (SELECT o.id FROM okt_repository.facts o
                      WHERE o.repository_id = $1 AND o.no = l.fact_no OFFSET 0) AS f
  JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
  LEFT JOIN LATERAL (SELECT o.kind FROM okt_repository.source_marks o
                      WHERE o.repository_id = $1 AND o.source_no = l.source_no OFFSET 0) AS m ON true
  LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
 ORDER BY l.fact_no, l.source_no
