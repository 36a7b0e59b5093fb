-- What is found by its words: facts, passages of sources, and sources as a whole. The words are made by the service, the same
-- way for texts and for questions. PostgreSQL's own full text is not used: under row-level security only operators that are
-- leakproof are conditions of an index, and those of full text are not.

-- One row for each text that can be found.
CREATE TABLE okt_repository.search_units (
    repository_id  uuid     NOT NULL,
    -- 1: a fact, 2: a passage, 3: a source.
    kind           smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
    -- Of the fact or of the source; of a passage 256 times that of its source, and which of its passages it is.
    no             bigint   NOT NULL,
    -- The source whose title was read with it.
    source_no      bigint   NOT NULL,
    -- Of a passage: its sentences, from 0.
    first_sentence integer,
    last_sentence  integer,
    -- How many words it has, with the title.
    length         integer  NOT NULL CHECK (length >= 0),
    -- Each once, in the order of bytes: what its lists are found by when it goes.
    words          text[]   NOT NULL,
    PRIMARY KEY (repository_id, kind, no),
    CHECK ((kind = 2) = (first_sentence IS NOT NULL AND last_sentence IS NOT NULL))
) PARTITION BY HASH (repository_id);
CREATE INDEX search_units_source_idx ON okt_repository.search_units (repository_id, source_no, kind, no);

-- For each word the texts that have it, in lists of 4,096 numbers of texts. Whoever writes holds the lock of the
-- repository's lists.
CREATE TABLE okt_repository.search_lists (
    repository_id uuid     NOT NULL,
    kind          smallint NOT NULL,
    word          text     COLLATE "C" NOT NULL,
    block         bigint   NOT NULL,
    -- How many texts are listed.
    documents     integer  NOT NULL CHECK (documents > 0),
    -- For each of them its number, how often it has the word, and how long it is.
    entries       bytea    NOT NULL,
    PRIMARY KEY (repository_id, kind, word, block)
) PARTITION BY HASH (repository_id);

-- How many texts there are and how many words they have together, for each kind; and the languages of sources.
CREATE TABLE okt_repository.search_totals (
    repository_id uuid     NOT NULL,
    kind          smallint NOT NULL,
    documents     bigint   NOT NULL CHECK (documents >= 0),
    words         bigint   NOT NULL CHECK (words >= 0),
    languages     text[]   NOT NULL DEFAULT '{}',
    PRIMARY KEY (repository_id, kind)
);

DO $$
DECLARE
    parted text;
    one    text;
BEGIN
    FOREACH parted IN ARRAY ARRAY['search_units', 'search_lists'] LOOP
        FOR n IN 0..15 LOOP
            EXECUTE format('CREATE TABLE okt_repository.%I PARTITION OF okt_repository.%I
                                FOR VALUES WITH (MODULUS 16, REMAINDER %s)', parted || '_p' || n, parted, n);
        END LOOP;
    END LOOP;
    FOR one IN SELECT t FROM unnest(ARRAY['search_units', 'search_lists', 'search_totals']) AS t UNION ALL
               SELECT t || '_p' || n FROM unnest(ARRAY['search_units', 'search_lists']) AS t, generate_series(0, 15) AS n LOOP
        EXECUTE format('ALTER TABLE okt_repository.%I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE okt_repository.%I FORCE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY repository ON okt_repository.%I
                            USING (repository_id = okt_repository.current_repository())', one);
    END LOOP;
END $$;
