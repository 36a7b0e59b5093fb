-- Applied only where the server has pgvector; see `applicable` in migrate.rs.
CREATE EXTENSION IF NOT EXISTS vector;

-- Which spaces there are, and how long their vectors. They belong to the installation, not to a tenant.
CREATE TABLE okt_vectors.spaces (
    name       text    PRIMARY KEY,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 16000)
);

-- Vectors of all tenants. Parted from the first day; a repository lies in one part.
CREATE TABLE okt_vectors.points (
    repository_id uuid   NOT NULL,
    -- The name of the space and its dimensions, as in `okt_facts/384`: the same in every database, so that rows can be
    -- moved as they are, and vectors of another length are never met.
    space         text   NOT NULL,
    id            uuid   NOT NULL,
    -- Of length one.
    embedding     vector NOT NULL,
    PRIMARY KEY (repository_id, space, id)
) PARTITION BY HASH (repository_id);

ALTER TABLE okt_vectors.points ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_vectors.points FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_vectors.points
    USING (repository_id = okt_repository.current_repository());

-- A part can be read by its own name too, so it has the policy as well.
DO $$
DECLARE
    part text;
BEGIN
    FOR n IN 0..63 LOOP
        part := format('okt_vectors.points_%s', n);
        EXECUTE format('CREATE TABLE %s PARTITION OF okt_vectors.points
                            FOR VALUES WITH (MODULUS 64, REMAINDER %s)', part, n);
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY repository ON %s
                            USING (repository_id = okt_repository.current_repository())', part);
    END LOOP;
END $$;
