-- What sources say: atomic statements, each there once however many sources make it. Parted from the first day.
CREATE SEQUENCE okt_repository.facts_no_seq;
CREATE TABLE okt_repository.facts (
    repository_id  uuid        NOT NULL,
    id             uuid        NOT NULL,
    -- What links refer to: half the size of the id. From a sequence, because parted tables had no identity before 17.
    no             bigint      NOT NULL DEFAULT nextval('okt_repository.facts_no_seq'),
    text           text        NOT NULL CHECK (length(text) BETWEEN 1 AND 4000),
    -- SHA-256 of the one form in which facts are compared.
    content_hash   bytea       NOT NULL CHECK (length(content_hash) = 32),
    kind           text        NOT NULL CHECK (kind IN ('text', 'image')),
    status         text        NOT NULL CHECK (status IN ('new', 'stable', 'duplicate', 'removed', 'rejected')),
    -- Who put it into words.
    model          text        NOT NULL,
    promptset_hash bytea       CHECK (length(promptset_hash) = 32),
    source_count   integer     NOT NULL CHECK (source_count >= 0),
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, id)
) PARTITION BY HASH (repository_id);
ALTER SEQUENCE okt_repository.facts_no_seq OWNED BY okt_repository.facts.no;
CREATE UNIQUE INDEX facts_no_key ON okt_repository.facts (repository_id, no);
CREATE UNIQUE INDEX facts_hash_key ON okt_repository.facts (repository_id, content_hash);
CREATE INDEX facts_source_count_idx ON okt_repository.facts (repository_id, source_count, no);

ALTER TABLE okt_repository.facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.facts FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.facts
    USING (repository_id = okt_repository.current_repository());

-- Which sources make which facts, and where.
CREATE TABLE okt_repository.fact_sources (
    repository_id uuid      NOT NULL,
    source_no     bigint    NOT NULL,
    fact_no       bigint    NOT NULL,
    -- The part of the source that was looked at; null for an image.
    chunk_no      integer,
    -- The sentences that it rests on, by their place in the text.
    sentences     integer[] NOT NULL,
    -- The image that it rests on.
    image_id      uuid,
    PRIMARY KEY (repository_id, source_no, fact_no)
) PARTITION BY HASH (repository_id);
CREATE INDEX fact_sources_fact_idx ON okt_repository.fact_sources (repository_id, fact_no, source_no);

ALTER TABLE okt_repository.fact_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.fact_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.fact_sources
    USING (repository_id = okt_repository.current_repository());

-- A part can be read by its own name too, so it has the policy as well.
DO $$
DECLARE
    parted text;
    part   text;
BEGIN
    FOREACH parted IN ARRAY ARRAY['facts', 'fact_sources'] LOOP
        FOR n IN 0..63 LOOP
            part := format('okt_repository.%s_%s', parted, n);
            EXECUTE format('CREATE TABLE %s PARTITION OF okt_repository.%s
                                FOR VALUES WITH (MODULUS 64, REMAINDER %s)', part, parted, n);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
            EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', part);
            EXECUTE format('CREATE POLICY repository ON %s
                                USING (repository_id = okt_repository.current_repository())', part);
        END LOOP;
    END LOOP;
END $$;

-- What models have answered, by what they were asked: nobody pays twice for one question. It goes with its source.
CREATE TABLE okt_repository.model_answers (
    repository_id uuid        NOT NULL,
    -- SHA-256 of model, prompt and input.
    key           bytea       NOT NULL CHECK (length(key) = 32),
    source_id     uuid        NOT NULL,
    -- The call in the books of the installation.
    call_id       uuid        NOT NULL,
    job_id        uuid        NOT NULL,
    model         text        NOT NULL,
    operation     text        NOT NULL,
    answer        text        NOT NULL,
    tokens_in     bigint      NOT NULL,
    tokens_out    bigint      NOT NULL,
    usd           double precision NOT NULL,
    latency_ms    bigint      NOT NULL,
    retries       integer     NOT NULL,
    characters    bigint      NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, key)
);
CREATE INDEX model_answers_source_idx ON okt_repository.model_answers (repository_id, source_id);

ALTER TABLE okt_repository.model_answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.model_answers FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.model_answers
    USING (repository_id = okt_repository.current_repository());

ALTER TABLE okt_repository.sources
    -- Why it does not go on although nothing failed.
    ADD COLUMN waiting_for text CHECK (waiting_for IN ('budget', 'rate_limit')),
    -- What came of looking for facts: with what, how much, and what failed.
    ADD COLUMN extraction  jsonb;
