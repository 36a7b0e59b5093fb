INSERT INTO okt_repository.facts
       (repository_id, id, text, content_hash, kind, status, model, promptset_hash, source_count)
SELECT $1, n.id, n.text, n.hash, n.kind,
       -- One that a person rejected when it was here before.
       CASE WHEN EXISTS (SELECT FROM okt_repository.rejected_facts r WHERE r.repository_id = $1 AND r.content_hash = n.hash)
            THEN 'rejected' ELSE $8 END,
       n.model, $7, 1
  FROM unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::text[]) AS n (id, text, hash, kind, model)
 -- Everybody in the same order, so that nobody waits in a circle.
 ORDER BY n.hash
ON CONFLICT (repository_id, content_hash) DO NOTHING
RETURNING no, content_hash
