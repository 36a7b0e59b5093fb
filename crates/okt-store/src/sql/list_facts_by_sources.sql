SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to
  FROM okt_repository.facts f
 WHERE f.repository_id = $1
   AND (f.source_count, f.no) < (coalesce($6::integer, 2147483647), coalesce($2::bigint, 9223372036854775807))
   -- A duplicate is shown with its canonical fact.
   AND CASE WHEN $3::text IS NULL THEN f.status <> 'duplicate' ELSE f.status = $3 END
   AND ($4::text IS NULL OR f.kind = $4)
   -- One of each group: its representative, or the oldest that is asked for where that is not.
   AND (NOT $7::boolean OR f.similar_to IS NULL
        OR NOT EXISTS (SELECT FROM okt_repository.facts o
                        WHERE o.repository_id = $1
                          AND (o.no = f.similar_to OR (o.similar_to = f.similar_to AND o.no < f.no))
                          AND ($3::text IS NULL OR o.status = $3)
                          AND ($4::text IS NULL OR o.kind = $4)))
 ORDER BY f.source_count DESC, f.no DESC
 LIMIT $5
