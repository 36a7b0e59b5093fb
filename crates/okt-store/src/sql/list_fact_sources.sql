-- Of a fact with its duplicates: a source that says it in two ways is there once, with the sentences of both.
SELECT s.id, s.title, s.url, l.chunk_no, l.sentences AS "sentences!", l.image_id,
       o.kind AS "import_kind?", o.registry, o.key_id, o.pushed_by, o.sha256 AS "sha256?", o.imported_at AS "imported_at?",
       o.withdrawn_at, o.withdrawn_why,
       -- What the sentences say, cut out here so that no whole text travels.
       ARRAY(SELECT substring(t.text FROM t.sentences[2 * i + 1] + 1 FOR t.sentences[2 * i + 2] - t.sentences[2 * i + 1])
               FROM unnest(l.sentences) WITH ORDINALITY AS at (i, n) ORDER BY n) AS "quotes!: Vec<Option<String>>",
       ARRAY(SELECT (b.boxes -> i ->> 0)::float8::integer
               FROM unnest(l.sentences) WITH ORDINALITY AS at (i, n) ORDER BY n) AS "pages!: Vec<Option<i32>>"
  FROM (SELECT g.source_no, min(g.chunk_no) AS chunk_no, g.image_id,
               -- Only where it was not found here as well.
               CASE WHEN bool_and(g.import_no IS NOT NULL) THEN max(g.import_no) END AS import_no,
               coalesce(array_agg(DISTINCT i) FILTER (WHERE i IS NOT NULL), '{}') AS sentences
          FROM okt_repository.fact_sources g
          LEFT JOIN LATERAL unnest(g.sentences) AS i ON true
         WHERE g.repository_id = $1 AND g.fact_no = ANY ($2)
         GROUP BY g.source_no, g.image_id ORDER BY g.source_no, g.image_id LIMIT $3) AS l
  JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
  LEFT JOIN okt_repository.imports o ON o.repository_id = $1 AND o.no = l.import_no
  LEFT JOIN okt_repository.source_texts t ON t.repository_id = s.repository_id AND t.source_id = s.id
  -- Once for a source, however many sentences.
  CROSS JOIN LATERAL (SELECT t.boxes::jsonb AS boxes OFFSET 0) AS b
 ORDER BY l.source_no, l.image_id
