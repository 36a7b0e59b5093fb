SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to
  FROM okt_repository.facts f
 WHERE f.repository_id = $1 AND (f.no = $2 OR f.similar_to = $2) AND f.no > $3
 ORDER BY f.no
 LIMIT $4
