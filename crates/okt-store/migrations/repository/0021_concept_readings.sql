-- Which facts were read for concepts. A fact that was read is not asked about again, whichever of its sources comes next.
CREATE TABLE okt_repository.concept_readings (
    repository_id uuid    NOT NULL,
    fact_no       bigint  NOT NULL,
    -- Who read it, or will: a number made of the model and its instructions.
    reader        bigint  NOT NULL,
    -- The source whose job is going to read it, and pays for it.
    source_no     bigint,
    -- The first of the facts that are asked about together. Kept, so that a job that begins anew asks the same questions, and
    -- finds their answers.
    batch         bigint  NOT NULL,
    done          boolean NOT NULL CHECK (done = (source_no IS NULL)),
    PRIMARY KEY (repository_id, fact_no)
) PARTITION BY HASH (repository_id);
CREATE INDEX concept_readings_open_idx ON okt_repository.concept_readings (repository_id, source_no) WHERE NOT done;

-- As large as the facts, so partitioned as they are. A partition can be read by its own name too, so it has the policy as
-- well.
DO $$
DECLARE
    one text;
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE okt_repository.%I PARTITION OF okt_repository.concept_readings
                            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', 'concept_readings_p' || n, n);
    END LOOP;
    FOR one IN SELECT 'concept_readings' UNION ALL
               SELECT 'concept_readings_p' || n FROM generate_series(0, 15) AS n LOOP
        EXECUTE format('ALTER TABLE okt_repository.%I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE okt_repository.%I FORCE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY repository ON okt_repository.%I
                            USING (repository_id = okt_repository.current_repository())', one);
    END LOOP;
END $$;
