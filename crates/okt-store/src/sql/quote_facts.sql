-- Of each fact the first source that has its words, or those of one that was merged into it; one that stands and was asked for before all
-- others: these words, and with those of the sentences before and behind them.
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
  FROM (SELECT DISTINCT ON (n.fact_no) n.fact_no, l.source_no, l.sentences
          FROM unnest($2::bigint[]) AS n (fact_no)
         CROSS JOIN LATERAL (SELECT n.fact_no AS no UNION ALL
                             (SELECT d.no FROM okt_repository.facts d
                               WHERE d.repository_id = $1 AND d.merged_into = n.fact_no LIMIT 100)) AS p
          JOIN okt_repository.fact_sources l ON l.repository_id = $1 AND l.fact_no = p.no
          JOIN okt_repository.sources o ON o.repository_id = $1 AND o.no = l.source_no
          LEFT JOIN okt_repository.source_marks m
                 ON m.repository_id = $1 AND m.source_no = l.source_no AND m.kind = 'retracted'
         ORDER BY n.fact_no, m.source_no IS NOT NULL,
                  cardinality($3::uuid[]) > 0 AND o.id <> ALL ($3::uuid[]),
                  ($4::integer IS NOT NULL OR $5::integer IS NOT NULL)
                      AND coalesce(extract(year FROM o.published_at), -1) NOT BETWEEN coalesce($4, 0) AND coalesce($5, 9999),
                  p.no <> n.fact_no, cardinality(l.sentences) = 0, l.source_no) AS g
  JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = g.source_no
  LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
 CROSS JOIN LATERAL (SELECT min(i) AS first, max(i) AS last FROM unnest(g.sentences) AS at (i)) AS r
 CROSS JOIN LATERAL (SELECT t.boxes::jsonb AS boxes OFFSET 0) AS b
