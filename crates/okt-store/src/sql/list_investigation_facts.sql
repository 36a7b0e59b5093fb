-- Facts of some sources of an investigation, by source and number from after a place on. Each is there once, as the canonical
-- fact, in the place of its link to the newest source.
SELECT n.source_no AS "source_no!", n.fact_no AS "fact_no!", f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model,
       f.promptset_hash, f.source_count, f.created_at, f.similar_to
  FROM (SELECT s.no AS source_no, l.fact_no, l.canonical
          FROM unnest($3::bigint[]) AS s (no)
         CROSS JOIN LATERAL (
               SELECT l.fact_no, c.no AS canonical
                 FROM okt_repository.fact_sources l
                 JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                 JOIN okt_repository.facts c
                   ON c.repository_id = $1 AND c.status IN ('new', 'stable')
                  -- Not coalesce(), which is no condition of an index under row-level security.
                  AND c.no = CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END
                WHERE l.repository_id = $1 AND l.source_no = s.no AND (s.no < $4::bigint OR l.fact_no < $5::bigint)
                  -- No link of a newer source of the investigation to the same fact, and no later one of this source.
                  AND NOT EXISTS (SELECT FROM okt_repository.facts d
                                    JOIN okt_repository.fact_sources o ON o.repository_id = $1 AND o.fact_no = d.no
                                    JOIN okt_repository.investigation_sources i
                                      ON i.repository_id = $1 AND i.investigation_no = $2 AND i.source_no = o.source_no
                                   WHERE d.repository_id = $1 AND (d.no = c.no OR d.merged_into = c.no)
                                     AND (o.source_no, o.fact_no) > (s.no, l.fact_no))
                ORDER BY l.fact_no DESC
                LIMIT $6) AS l
         ORDER BY s.no DESC, l.fact_no DESC
         LIMIT $6) AS n
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.canonical
 ORDER BY n.source_no DESC, n.fact_no DESC
