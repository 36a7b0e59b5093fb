SELECT s.id, s.title, s.url, l.chunk_no, l.sentences, l.image_id,
       -- What the sentences say, cut out here so that no whole text travels.
       ARRAY(SELECT substring(t.text FROM t.sentences[2 * i + 1] + 1 FOR t.sentences[2 * i + 2] - t.sentences[2 * i + 1])
               FROM unnest(l.sentences) WITH ORDINALITY AS at (i, n) ORDER BY n) AS "quotes!: Vec<Option<String>>",
       ARRAY(SELECT (b.boxes -> i ->> 0)::float8::integer
               FROM unnest(l.sentences) WITH ORDINALITY AS at (i, n) ORDER BY n) AS "pages!: Vec<Option<i32>>"
  FROM okt_repository.fact_sources l
  JOIN okt_repository.sources s ON s.repository_id = l.repository_id AND s.no = l.source_no
  LEFT JOIN okt_repository.source_texts t ON t.repository_id = s.repository_id AND t.source_id = s.id
  -- Once for a source, however many sentences.
  CROSS JOIN LATERAL (SELECT t.boxes::jsonb AS boxes OFFSET 0) AS b
 WHERE l.repository_id = $1 AND l.fact_no = $2
 ORDER BY l.source_no
 LIMIT $3
