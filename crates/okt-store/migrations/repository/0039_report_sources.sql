-- Facts that a report has to be compared with again although their own rows did not change.

-- As in 0036. A fact that others are merged into, or were, has other sources than before.
CREATE OR REPLACE FUNCTION okt_repository.note_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM okt_repository.reports) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO okt_repository.report_facts (repository_id, fact_no)
        SELECT c.repository_id, c.no FROM changed c;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO okt_repository.report_facts (repository_id, fact_no)
        SELECT b.repository_id, b.no FROM before b
        UNION
        SELECT b.repository_id, b.merged_into FROM before b WHERE b.merged_into IS NOT NULL;
    ELSE
        -- Planned each time: a statement may have changed one row or all.
        EXECUTE 'INSERT INTO okt_repository.report_facts (repository_id, fact_no)
        SELECT DISTINCT c.repository_id, n.no
          FROM changed c JOIN before b ON b.repository_id = c.repository_id AND b.no = c.no
         CROSS JOIN LATERAL (VALUES (c.no), (c.merged_into), (b.merged_into)) AS n (no)
         WHERE n.no IS NOT NULL
           AND ((b.status, b.merged_into) IS DISTINCT FROM (c.status, c.merged_into)
                OR (c.embedded_in IS NOT NULL AND b.embedded_in IS DISTINCT FROM c.embedded_in)
                -- Whether it rests on marked sources alone may be otherwise.
                OR b.source_count <> c.source_count)';
    END IF;
    RETURN NULL;
END $$;

-- A mark concerns all facts of its source: those that sentences were compared with, and those that were left out because of a mark.
CREATE OR REPLACE FUNCTION okt_repository.note_marks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM okt_repository.reports) THEN
        RETURN NULL;
    END IF;
    INSERT INTO okt_repository.report_facts (repository_id, fact_no)
    SELECT DISTINCT c.repository_id, coalesce(f.merged_into, s.fact_no)
      FROM changed c
      JOIN okt_repository.fact_sources s ON s.repository_id = c.repository_id AND s.source_no = c.source_no
      LEFT JOIN okt_repository.facts f ON f.repository_id = c.repository_id AND f.no = s.fact_no;
    RETURN NULL;
END $$;
