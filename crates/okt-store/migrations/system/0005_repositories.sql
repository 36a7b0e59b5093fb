CREATE TABLE okt_system.repositories (
    id           uuid        PRIMARY KEY,
    name         text        NOT NULL,
    slug         text        NOT NULL,
    description  text        NOT NULL,
    -- The named database that it lives in.
    database     text        NOT NULL,
    -- How its owner wants it kept: 'shared', 'isolated' or 'sovereign'.
    tier         text        NOT NULL CHECK (tier IN ('shared', 'isolated', 'sovereign')),
    preset       text        NOT NULL,
    -- Null for the starter repository until somebody is there to have it.
    owner_id     uuid        REFERENCES okt_system.users ON DELETE SET NULL,
    -- Only an active one can be seen. One that was deleted leaves this row without its words, so that nobody takes the
    -- installation for a fresh one; one that was never finished leaves nothing.
    state        text        NOT NULL CHECK (state IN ('creating', 'active', 'deleted', 'abandoned')),
    -- Where somebody is moving it.
    moving_to    text,
    -- Since when rows of it may lie where they do not belong: it is being made, it moved away, or it was deleted.
    untidy_since timestamptz,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX repositories_slug_key ON okt_system.repositories (slug) WHERE state IN ('creating', 'active');
CREATE INDEX repositories_active_idx ON okt_system.repositories (id) WHERE state = 'active';
CREATE INDEX repositories_owner_id_idx ON okt_system.repositories (owner_id);
CREATE INDEX repositories_untidy_idx ON okt_system.repositories (untidy_since) WHERE untidy_since IS NOT NULL;

-- What a repository does with its sources. Null is what the installation does.
CREATE TABLE okt_system.repository_settings (
    repository_id             uuid    PRIMARY KEY REFERENCES okt_system.repositories ON DELETE CASCADE,
    -- The providers that are switched on.
    search                    text[]  NOT NULL,
    resolution                text[]  NOT NULL,
    auto_contribute           boolean NOT NULL DEFAULT false,
    registry_id               text,
    push_level                text    NOT NULL DEFAULT 'concepts' CHECK (push_level IN ('facts', 'concepts')),
    allowed_models            text[],
    -- Empty accepts all.
    accepted_promptset_hashes text[]  NOT NULL DEFAULT '{}',
    -- Null is no limit.
    monthly_usd               double precision CHECK (monthly_usd >= 0),
    refinement                boolean,
    summarization             boolean,
    synthesis                 boolean,
    image_extraction          boolean
);
