-- Slices that join their concepts with the next numbers, for good. They cover the facts that no slice of the concept covers yet; one
-- with none of these has nothing to say here.
WITH placed AS MATERIALIZED (
    SELECT n.at, n.id, n.content, c.no AS concept_no,
           (coalesce((SELECT max(s.slice_number) FROM okt_repository.concept_summaries s
                       WHERE s.repository_id = $1 AND s.concept_no = c.no), 0)
            + row_number() OVER (PARTITION BY c.no ORDER BY n.at))::integer AS number
      FROM unnest($2::uuid[], $3::uuid[], $4::text[]) WITH ORDINALITY AS n (id, concept, content, at)
      JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.id = n.concept),
covered AS MATERIALIZED (
    SELECT DISTINCT ON (p.concept_no, f.no) p.at, p.concept_no, p.number, f.no AS fact_no
      FROM unnest($5::bigint[], $6::uuid[]) AS n (at, fact)
      JOIN placed p ON p.at = n.at
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.fact
     WHERE NOT EXISTS (SELECT FROM okt_repository.summary_facts s
                        WHERE s.repository_id = $1 AND s.concept_no = p.concept_no AND s.fact_no = f.no)
     ORDER BY p.concept_no, f.no, p.at),
added AS (
    INSERT INTO okt_repository.concept_summaries
           (repository_id, concept_no, slice_number, id, is_open, fact_count, revision, written, content, model, promptset_hash,
            written_at, import_no)
    SELECT $1, p.concept_no, p.number, p.id, false, c.facts, 1, 1, p.content, $7, $8, clock_timestamp(), $9
      FROM placed p
      JOIN (SELECT at, count(*)::integer AS facts FROM covered GROUP BY at) AS c ON c.at = p.at
    ON CONFLICT DO NOTHING
    RETURNING concept_no, slice_number),
facts AS (
    INSERT INTO okt_repository.summary_facts (repository_id, concept_no, fact_no, slice_number)
    SELECT $1, c.concept_no, c.fact_no, c.number
      FROM covered c JOIN added a ON a.concept_no = c.concept_no AND a.slice_number = c.number
    ON CONFLICT DO NOTHING)
SELECT count(*) AS "count!" FROM added
