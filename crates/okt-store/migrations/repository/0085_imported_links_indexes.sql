-- Makes one index of those of the parts. All of them are there, so nothing is read.
DO $$
DECLARE
    parted text;
BEGIN
    FOREACH parted IN ARRAY ARRAY['fact_sources', 'fact_concepts'] LOOP
        EXECUTE format('CREATE INDEX %I ON ONLY okt_repository.%I (repository_id, import_no) WHERE import_no IS NOT NULL',
                       parted || '_import_idx', parted);
        FOR n IN 0..15 LOOP
            EXECUTE format('ALTER INDEX okt_repository.%I ATTACH PARTITION okt_repository.%I',
                           parted || '_import_idx', parted || '_p' || n || '_import_idx');
        END LOOP;
    END LOOP;
END $$;
