-- Which model made which vectors: those of two models can't be compared.
CREATE TABLE okt_system.embedding_spaces (
    no         smallint    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text        NOT NULL,
    dimensions integer     NOT NULL CHECK (dimensions > 0),
    -- `filling` until every fact has a vector in it, `current` while it is searched, `retired` until it is dropped.
    state      text        NOT NULL CHECK (state IN ('filling', 'current', 'retired')),
    made_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX embedding_spaces_current_key ON okt_system.embedding_spaces (state) WHERE state = 'current';
CREATE UNIQUE INDEX embedding_spaces_filling_key ON okt_system.embedding_spaces (state) WHERE state = 'filling';
