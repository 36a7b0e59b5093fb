-- Of each fact the first source that has its words: these words, and with those of the sentences before and behind them.
SELECT g.fact_no AS "fact_no!", s.id AS "source!", s.title, s.published_at, s.language,
       (SELECT string_agg(substring(t.text FROM t.sentences[2 * i + 1] + 1 FOR t.sentences[2 * i + 2] - t.sentences[2 * i + 1]),
                          ' ' ORDER BY n)
          FROM unnest(g.sentences) WITH ORDINALITY AS at (i, n)) AS quote,
       CASE WHEN cardinality(g.sentences) > 0 THEN
           substring(t.text FROM t.sentences[2 * greatest(r.first - 1, 0) + 1] + 1
                     FOR t.sentences[2 * least(r.last + 1, cardinality(t.sentences) / 2 - 1) + 2]
                         - t.sentences[2 * greatest(r.first - 1, 0) + 1])
       END AS around,
       (b.boxes -> g.sentences[1] ->> 0)::float8::integer AS page
  FROM (SELECT DISTINCT ON (l.fact_no) l.fact_no, l.source_no, l.sentences
          FROM okt_repository.fact_sources l
         WHERE l.repository_id = $1 AND l.fact_no = ANY ($2)
         ORDER BY l.fact_no, cardinality(l.sentences) = 0, l.source_no) AS g
  JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = g.source_no
  LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
 CROSS JOIN LATERAL (SELECT min(i) AS first, max(i) AS last FROM unnest(g.sentences) AS at (i)) AS r
 CROSS JOIN LATERAL (SELECT t.boxes::jsonb AS boxes OFFSET 0) AS b
