-- The members of a group whose representative leaves follow the oldest of those that stay. All are held.
WITH heirs AS (
    SELECT m.similar_to AS representative, min(m.no) AS heir
      FROM okt_repository.facts m
     WHERE m.repository_id = $1 AND m.similar_to = ANY ($2) AND m.no <> ALL ($2)
     GROUP BY m.similar_to)
UPDATE okt_repository.facts f
   SET similar_to = CASE WHEN f.no = ANY ($2) THEN NULL
                         ELSE (SELECT nullif(h.heir, f.no) FROM heirs h WHERE h.representative = f.similar_to) END
 WHERE f.repository_id = $1 AND (f.similar_to = ANY ($2) OR (f.no = ANY ($2) AND f.similar_to IS NOT NULL))
