-- What reports lacked to stay true.

-- The fact by which a judgement of a person holds for this one, while it is a duplicate of it.
ALTER TABLE okt_repository.report_annotations ADD COLUMN through_no bigint;
-- What the last source of the fact that was deleted was called.
ALTER TABLE okt_repository.report_annotations ADD COLUMN source_title text;

ALTER TABLE okt_repository.report_changes ADD COLUMN source_title text;
-- What was said of the fact before a person judged, and what that person says; the latter is null if they took it back.
ALTER TABLE okt_repository.report_changes ADD COLUMN posture_before text;
ALTER TABLE okt_repository.report_changes ADD COLUMN posture_after text;

-- The last change that listeners were told of.
ALTER TABLE okt_repository.reports ADD COLUMN told_no bigint NOT NULL DEFAULT 0;

-- As in 0034, and also when a fact has a vector of another model than before: it is near other sentences then.
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
        SELECT b.repository_id, b.no FROM before b;
    ELSE
        -- Planned each time: a statement may have changed one row or all.
        EXECUTE 'INSERT INTO okt_repository.report_facts (repository_id, fact_no)
        SELECT c.repository_id, c.no
          FROM changed c JOIN before b ON b.repository_id = c.repository_id AND b.no = c.no
         WHERE (b.status, b.merged_into) IS DISTINCT FROM (c.status, c.merged_into)
            OR (c.embedded_in IS NOT NULL AND b.embedded_in IS DISTINCT FROM c.embedded_in)
            -- Whether it rests on marked sources alone may be otherwise.
            OR b.source_count <> c.source_count';
    END IF;
    RETURN NULL;
END $$;
