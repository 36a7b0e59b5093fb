CREATE TABLE okt_system.users (
    id            uuid        PRIMARY KEY,
    -- As it was typed, for showing; trimmed and folded, for finding.
    email         text        NOT NULL,
    email_key     text        NOT NULL CONSTRAINT users_email_key UNIQUE,
    name          text        NOT NULL,
    password_hash text        NOT NULL,
    -- Another one with every change of the user's roles. Whoever looks up a session reads it in the same statement, so
    -- what was remembered of the roles is never older than the request. Random, so that it never comes again, not even
    -- after a restore.
    roles_version uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A session is the family of its refresh tokens.
CREATE TABLE okt_system.sessions (
    id         uuid        PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX sessions_user_id_idx ON okt_system.sessions (user_id);
CREATE INDEX sessions_expires_at_idx ON okt_system.sessions (expires_at);

CREATE TABLE okt_system.refresh_tokens (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    session_id uuid        NOT NULL REFERENCES okt_system.sessions ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    -- The token that took its place. One that was used and comes again was stolen, and ends the session, unless the
    -- reply was lost a moment ago and the successor was never used: then the successor is superseded by another.
    successor     bytea,
    superseded_at timestamptz
);
CREATE INDEX refresh_tokens_session_id_idx ON okt_system.refresh_tokens (session_id);

CREATE TABLE okt_system.role_assignments (
    user_id    uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    -- 'system', or the id of a repository.
    domain     text        NOT NULL,
    role       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (user_id, domain, role)
);
CREATE INDEX role_assignments_domain_idx ON okt_system.role_assignments (domain, role, user_id);

-- Per statement, so that two million assignments in one COPY cost two million rows and not as many updates.
CREATE FUNCTION okt_system.count_role_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE okt_system.users u
       SET roles_version = gen_random_uuid()
      FROM (SELECT DISTINCT user_id FROM changed) c
     WHERE u.id = c.user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER role_assignments_inserted AFTER INSERT ON okt_system.role_assignments
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_role_changes();
CREATE TRIGGER role_assignments_deleted AFTER DELETE ON okt_system.role_assignments
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_role_changes();
CREATE FUNCTION okt_system.count_role_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE okt_system.users u
       SET roles_version = gen_random_uuid()
      FROM (SELECT user_id FROM before UNION SELECT user_id FROM after) c
     WHERE u.id = c.user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER role_assignments_updated AFTER UPDATE ON okt_system.role_assignments
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_role_moves();
CREATE FUNCTION okt_system.count_role_truncation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE okt_system.users SET roles_version = gen_random_uuid();
    RETURN NULL;
END $$;
CREATE TRIGGER role_assignments_truncated AFTER TRUNCATE ON okt_system.role_assignments
    FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_role_truncation();

CREATE TABLE okt_system.api_keys (
    id            uuid        PRIMARY KEY,
    user_id       uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    name          text        NOT NULL,
    -- The first characters, to know it by.
    prefix        text        NOT NULL,
    hash          bytea       NOT NULL CONSTRAINT api_keys_hash_key UNIQUE CHECK (octet_length(hash) = 32),
    permissions   text[]      NOT NULL,
    repository_id uuid,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz,
    last_used_at  timestamptz,
    revoked_at    timestamptz
);
CREATE INDEX api_keys_user_id_idx ON okt_system.api_keys (user_id, id);

CREATE TABLE okt_system.audit (
    id            uuid        PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Null for strangers and for the service itself. No reference: the record outlives the account.
    actor_id      uuid,
    -- 'session', 'api_key', 'anonymous', 'service'.
    actor_kind    text        NOT NULL,
    -- Which session or key, where there is one.
    credential_id uuid,
    -- For example 'role.assigned', 'api_key.created', 'request.denied'.
    action        text        NOT NULL,
    object        text        NOT NULL,
    repository_id uuid,
    address       text,
    request_id    text        NOT NULL
);
CREATE INDEX audit_action_idx ON okt_system.audit (action, id);
CREATE INDEX audit_object_idx ON okt_system.audit (object, id);
CREATE INDEX audit_at_idx ON okt_system.audit (at);
CREATE INDEX audit_actor_idx ON okt_system.audit (actor_id, id);
CREATE INDEX audit_repository_idx ON okt_system.audit (repository_id, id) WHERE repository_id IS NOT NULL;
