-- Whose packages and bundles a repository takes from a registry.
ALTER TABLE okt_system.repository_settings
    ADD COLUMN trust text NOT NULL DEFAULT 'anyone' CHECK (trust IN ('anyone', 'signed', 'listed')),
    -- Public keys, in the form of key ids; they count where trust is 'listed'.
    ADD COLUMN trusted_keys text[] NOT NULL DEFAULT '{}';

-- Whose packages and bundles nobody here takes any more.
CREATE TABLE okt_system.revoked_origins (
    key_id     text        PRIMARY KEY CHECK (length(key_id) <= 100),
    revoked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Up to when the withdrawals of a registry were read; and, of a list that was not read to its end, since when it is, and where to
-- go on.
CREATE TABLE okt_system.registry_withdrawals (
    registry   text        PRIMARY KEY,
    read_until timestamptz NOT NULL,
    since      timestamptz,
    cursor     text
);
