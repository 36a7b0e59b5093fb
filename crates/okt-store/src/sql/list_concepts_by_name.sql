SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description, c.unmapped_label,
       c.fact_count, c.created_at
  FROM (SELECT * FROM okt_repository.concepts
         WHERE repository_id = $1 AND merged_into IS NULL
           AND (name_key, context_no) > ($2::text, $3::bigint) AND fact_count >= $4::bigint
           AND ($7::bigint IS NULL OR context_no = $7)
           -- Many have a word that begins so, so few rows are passed over.
           AND ($5::text IS NULL OR strpos(' ' || translate(name_key, '-/()[],.:;"', '           '), ' ' || $5) > 0)
         ORDER BY name_key, context_no
         LIMIT $6) AS c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 ORDER BY c.name_key, c.context_no
