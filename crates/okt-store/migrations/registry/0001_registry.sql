-- Who may push and pull.
CREATE TABLE okt_registry.keys (
    -- What a key is called by, its first part.
    id            text        PRIMARY KEY,
    name          text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- SHA-256 of the whole key, for bearers.
    hash          bytea       NOT NULL CHECK (length(hash) = 32),
    -- Its second part, encrypted: a signature can't be verified by a hash.
    sealed        bytea       NOT NULL,
    may_write     boolean     NOT NULL,
    -- Packages and bundles in a day; null for any number.
    daily_pushes  integer     CHECK (daily_pushes >= 0),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz,
    revoked_at    timestamptz
);

-- Of signatures, until their time is over.
CREATE TABLE okt_registry.nonces (
    key_id     text        NOT NULL,
    nonce      text        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, nonce)
);
CREATE INDEX nonces_expires_at_idx ON okt_registry.nonces (expires_at);

-- What each key has pushed in a day, and 'anonymous' what all without one have.
CREATE TABLE okt_registry.pushes (
    key_id text    NOT NULL,
    day    date    NOT NULL,
    count  integer NOT NULL,
    bytes  bigint  NOT NULL,
    PRIMARY KEY (key_id, day)
);

-- Sources are told apart by any of three names, which are found by their hashes: names may be long.
CREATE TABLE okt_registry.sources (
    id           uuid        PRIMARY KEY,
    url          text,
    url_hash     bytea       CHECK (length(url_hash) = 32),
    doi          text,
    doi_hash     bytea       CHECK (length(doi_hash) = 32),
    sha256       bytea       CHECK (length(sha256) = 32),
    title        text,
    author       text,
    kind         text,
    language     text,
    published_at date,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (url_hash IS NOT NULL OR doi_hash IS NOT NULL OR sha256 IS NOT NULL)
);
CREATE UNIQUE INDEX sources_url_key ON okt_registry.sources (url_hash) WHERE url_hash IS NOT NULL;
CREATE UNIQUE INDEX sources_doi_key ON okt_registry.sources (doi_hash) WHERE doi_hash IS NOT NULL;
CREATE UNIQUE INDEX sources_sha256_key ON okt_registry.sources (sha256) WHERE sha256 IS NOT NULL;

-- The latest package of a source, a model and a signer, and those before it.
CREATE TABLE okt_registry.decompositions (
    source_id       uuid        NOT NULL,
    model_id        text        NOT NULL,
    version         integer     NOT NULL CHECK (version > 0),
    -- Also the name of its file.
    package_sha256  bytea       NOT NULL CHECK (length(package_sha256) = 32),
    bytes           bigint      NOT NULL,
    fact_count      integer     NOT NULL,
    concept_count   integer     NOT NULL,
    -- Null for one that was pushed without: older than promptset hashes, and counted as built-in.
    promptset_hash  text,
    embedding_model text,
    decomposed_by   text,
    decomposed_at   timestamptz NOT NULL,
    pushed_by       text        NOT NULL,
    pushed_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- As it came with the package, and the key that made it.
    signature       text,
    key_id          text,
    -- The first eight bytes of the hashes of its facts, to tell what is new in the next one.
    fact_keys       bigint[]    NOT NULL,
    withdrawn_at    timestamptz,
    withdrawn_why   text,
    PRIMARY KEY (source_id, model_id, version)
);
CREATE INDEX decompositions_withdrawn_idx ON okt_registry.decompositions (withdrawn_at, source_id) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX decompositions_package_idx ON okt_registry.decompositions (package_sha256);
CREATE INDEX decompositions_pushed_by_idx ON okt_registry.decompositions (pushed_by, source_id);

-- Graph Bundles.
CREATE TABLE okt_registry.graphs (
    id             uuid        PRIMARY KEY,
    name           text        NOT NULL,
    description    text        NOT NULL,
    tags           text[]      NOT NULL,
    sha256         text        NOT NULL,
    schema_version integer     NOT NULL,
    source_count   bigint      NOT NULL,
    fact_count     bigint      NOT NULL,
    concept_count  bigint      NOT NULL,
    -- Of the file.
    file_sha256    bytea       NOT NULL CHECK (length(file_sha256) = 32),
    bytes          bigint      NOT NULL,
    owner          text        NOT NULL,
    -- As it came with the bundle, and the key that made it.
    signature      text,
    key_id         text,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    withdrawn_at   timestamptz,
    withdrawn_why  text
);
-- Of each signer: what one has pushed is in nobody's way.
CREATE UNIQUE INDEX graphs_name_key ON okt_registry.graphs (name, sha256, coalesce(key_id, '')) WHERE withdrawn_at IS NULL;
CREATE INDEX graphs_withdrawn_idx ON okt_registry.graphs (withdrawn_at, id) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX graphs_owner_idx ON okt_registry.graphs (owner);
CREATE INDEX graphs_sha256_idx ON okt_registry.graphs (sha256);
CREATE INDEX graphs_file_idx ON okt_registry.graphs (file_sha256);
CREATE INDEX graphs_tags_idx ON okt_registry.graphs USING gin (tags);
