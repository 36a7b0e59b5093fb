SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at
  FROM okt_repository.facts f
 WHERE f.repository_id = $1
   AND (f.source_count, f.no) < (coalesce($7::integer, 2147483647), coalesce($2::bigint, 9223372036854775807))
   -- What another fact stands for is shown with that one.
   AND CASE WHEN $3::text IS NULL THEN f.status <> 'duplicate' ELSE f.status = $3 END
   AND ($4::text IS NULL OR f.kind = $4)
   AND ($5::text IS NULL OR strpos(lower(f.text), $5) > 0)
 ORDER BY f.source_count DESC, f.no DESC
 LIMIT $6
