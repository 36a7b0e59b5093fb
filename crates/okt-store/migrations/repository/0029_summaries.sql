-- What is known of concepts, in words: slices of facts that are summed up together, and one definition for each name.

-- Concepts that are summed up. Whoever counts the facts of a concept anew raises `changed`; a job that has looked at all of
-- them writes down how far it has seen. A concept below the floor has no row yet.
CREATE TABLE okt_repository.summary_states (
    repository_id uuid        NOT NULL,
    concept_no    bigint      NOT NULL,
    changed       bigint      NOT NULL DEFAULT 1,
    seen          bigint      NOT NULL DEFAULT 0 CHECK (seen <= changed),
    -- The job that writes its slices. One that has held it for too long has died.
    locked_by     uuid,
    locked_at     timestamptz CHECK ((locked_at IS NULL) = (locked_by IS NULL)),
    PRIMARY KEY (repository_id, concept_no)
);
CREATE INDEX summary_states_changed_idx ON okt_repository.summary_states (repository_id, concept_no) WHERE changed > seen;
CREATE INDEX summary_states_lock_idx ON okt_repository.summary_states (repository_id, locked_by) WHERE locked_by IS NOT NULL;

-- A text about some facts of a concept. A full slice is closed and keeps its facts; one is open and takes in new ones.
CREATE TABLE okt_repository.concept_summaries (
    repository_id  uuid    NOT NULL,
    concept_no     bigint  NOT NULL,
    -- From 1; the number of a slice that went is not given again while later ones are there.
    slice_number   integer NOT NULL CHECK (slice_number > 0),
    id             uuid    NOT NULL,
    is_open        boolean NOT NULL,
    -- How many facts it had when they were last looked at. Fewer by now: some were deleted.
    fact_count     integer NOT NULL CHECK (fact_count > 0),
    -- Raised whenever its facts change; the text is about those of revision `written`, none of 0.
    revision       bigint  NOT NULL DEFAULT 1,
    written        bigint  NOT NULL DEFAULT 0 CHECK (written <= revision),
    content        text    NOT NULL DEFAULT '',
    -- Sentences that a model wrote without a fact to stand on.
    dropped        integer NOT NULL DEFAULT 0,
    model          text,
    promptset_hash bytea,
    -- Under which the answer is kept that it was made of.
    question       bytea,
    written_at     timestamptz CHECK ((written_at IS NULL) = (written = 0)),
    -- Why it was not written, if that was given up.
    failure        text,
    PRIMARY KEY (repository_id, concept_no, slice_number)
);

-- Which facts a slice covers. By the key each of them once for a concept.
CREATE TABLE okt_repository.summary_facts (
    repository_id uuid    NOT NULL,
    concept_no    bigint  NOT NULL,
    fact_no       bigint  NOT NULL,
    slice_number  integer NOT NULL,
    PRIMARY KEY (repository_id, concept_no, fact_no)
) PARTITION BY HASH (repository_id);
CREATE INDEX summary_facts_fact_idx ON okt_repository.summary_facts (repository_id, fact_no);

-- What a name means, over all its contexts. The latest version holds; a few before it are kept to be compared.
CREATE TABLE okt_repository.concept_syntheses (
    repository_id  uuid        NOT NULL,
    -- As concepts.name_key.
    name_key       text        COLLATE "C" NOT NULL,
    version        integer     NOT NULL CHECK (version > 0),
    canonical_name text        NOT NULL,
    content        text        NOT NULL,
    model          text        NOT NULL,
    promptset_hash bytea       NOT NULL,
    question       bytea       NOT NULL,
    -- A hash of what it was made of: as long as that stays, nobody is asked again.
    inputs         bytea       NOT NULL,
    dropped        integer     NOT NULL,
    -- By their ids, which may be gone by now: the slices and concepts that it covers, the facts and images that it cites.
    summaries      uuid[]      NOT NULL,
    concepts       uuid[]      NOT NULL,
    facts          uuid[]      NOT NULL,
    images         uuid[]      NOT NULL,
    -- Those of the images, in the same order.
    image_sources  uuid[]      NOT NULL CHECK (cardinality(image_sources) = cardinality(images)),
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When what it was made of was last found to be the same.
    checked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, name_key, version)
);

-- As many as links, so partitioned as they are. A partition can be read by its own name too, so it has the policy as well.
DO $$
DECLARE
    one text;
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE okt_repository.%I PARTITION OF okt_repository.summary_facts
                            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', 'summary_facts_p' || n, n);
    END LOOP;
    FOR one IN SELECT t FROM unnest(ARRAY['summary_states', 'concept_summaries', 'summary_facts', 'concept_syntheses']) AS t
                UNION ALL
               SELECT 'summary_facts_p' || n FROM generate_series(0, 15) AS n LOOP
        EXECUTE format('ALTER TABLE okt_repository.%I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE okt_repository.%I FORCE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY repository ON okt_repository.%I
                            USING (repository_id = okt_repository.current_repository())', one);
    END LOOP;
END $$;
