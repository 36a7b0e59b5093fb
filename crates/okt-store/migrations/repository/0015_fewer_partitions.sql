-- Sixteen parts in place of sixty-four. A repository is in one part, however many there are, and every statement that is
-- planned once for all repositories locks them all: few enough that these locks stay cheap.
DO $$
DECLARE
    parted text;
    part   text;
BEGIN
    FOREACH parted IN ARRAY ARRAY['facts', 'fact_sources', 'fact_concepts'] LOOP
        FOR n IN 0..63 LOOP
            EXECUTE format('ALTER TABLE okt_repository.%I DETACH PARTITION okt_repository.%I', parted, parted || '_' || n);
        END LOOP;
        FOR n IN 0..15 LOOP
            part := format('okt_repository.%I', parted || '_p' || n);
            EXECUTE format('CREATE TABLE %s PARTITION OF okt_repository.%I
                                FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, parted, n);
            -- A part can be read by its own name too, so it has the policy as well; but not before it is filled.
        END LOOP;
        -- The policies would hide every row, from an owner as well.
        EXECUTE format('ALTER TABLE okt_repository.%I NO FORCE ROW LEVEL SECURITY', parted);
        FOR n IN 0..63 LOOP
            part := format('okt_repository.%I', parted || '_' || n);
            EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', part);
            EXECUTE format('INSERT INTO okt_repository.%I SELECT * FROM %s', parted, part);
            EXECUTE format('DROP TABLE %s', part);
        END LOOP;
        EXECUTE format('ALTER TABLE okt_repository.%I FORCE ROW LEVEL SECURITY', parted);
        FOR n IN 0..15 LOOP
            part := format('okt_repository.%I', parted || '_p' || n);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
            EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', part);
            EXECUTE format('CREATE POLICY repository ON %s
                                USING (repository_id = okt_repository.current_repository())', part);
        END LOOP;
    END LOOP;
END $$;
