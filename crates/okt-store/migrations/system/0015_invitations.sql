-- Who was asked to join a repository and has not answered. The row goes with its use.
CREATE TABLE okt_system.invitations (
    id            uuid        PRIMARY KEY,
    repository_id uuid        NOT NULL REFERENCES okt_system.repositories ON DELETE CASCADE,
    -- Whom it was meant for, in the words of whoever wrote it: nobody is looked up by it, and it proves nothing.
    email         text        NOT NULL,
    email_key     text        NOT NULL,
    role          text        NOT NULL,
    -- SHA-256 of the secret. Whoever has that may join.
    hash          bytea       NOT NULL CONSTRAINT invitations_hash_key UNIQUE CHECK (octet_length(hash) = 32),
    -- An invitation counts as long as this person may still give the role.
    invited_by    uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz NOT NULL,
    CONSTRAINT invitations_email_key UNIQUE (repository_id, email_key)
);
CREATE INDEX invitations_list_idx ON okt_system.invitations (repository_id, id);
CREATE INDEX invitations_invited_by_idx ON okt_system.invitations (invited_by);
CREATE INDEX invitations_expires_at_idx ON okt_system.invitations (expires_at);
