CREATE TABLE okt_system.oauth_clients (
    -- Ours, 'client_…', for one that registered itself; its own https address for one that is described by a document.
    -- Neither can be mistaken for the id of a user.
    id                text        PRIMARY KEY,
    name              text        NOT NULL,
    uri               text,
    redirect_uris     text[]      NOT NULL,
    grant_types       text[]      NOT NULL,
    -- What it may ask for at most; null is anything.
    scope             text[],
    -- 'none', 'client_secret_basic' or 'client_secret_post'.
    auth_method       text        NOT NULL,
    secret_hash       bytea       CHECK (octet_length(secret_hash) = 32),
    -- For reading, changing and deleting its registration; null for a document.
    registration_hash bytea       CHECK (octet_length(registration_hash) = 32),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When somebody last let it in. One that nobody ever did is forgotten after a day.
    authorized_at     timestamptz,
    -- A document is read again after this; null for a registration.
    stale_at          timestamptz
);
CREATE INDEX oauth_clients_never_let_in_idx ON okt_system.oauth_clients (created_at) WHERE authorized_at IS NULL;
CREATE INDEX oauth_clients_authorized_at_idx ON okt_system.oauth_clients (authorized_at);

-- An authorization that a person has been asked for. What they decide on is what is kept here, not what their browser
-- sends with the decision.
CREATE TABLE okt_system.oauth_requests (
    id             uuid        PRIMARY KEY,
    -- The browser that asked: the hash of its cookie.
    browser        bytea       NOT NULL CHECK (octet_length(browser) = 32),
    -- Who signed in to decide.
    user_id        uuid        REFERENCES okt_system.users ON DELETE CASCADE,
    client_id      text        NOT NULL REFERENCES okt_system.oauth_clients ON DELETE CASCADE,
    redirect_uri   text        NOT NULL,
    scope          text[]      NOT NULL,
    state          text,
    code_challenge text        NOT NULL,
    resource       text        NOT NULL,
    expires_at     timestamptz NOT NULL,
    decided_at     timestamptz
);
CREATE INDEX oauth_requests_expires_at_idx ON okt_system.oauth_requests (expires_at);

-- A browser in which somebody signed in to decide, for a few minutes.
CREATE TABLE okt_system.oauth_browsers (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    user_id    uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX oauth_browsers_expires_at_idx ON okt_system.oauth_browsers (expires_at);

-- What a person gave to a client. It lives and ends as the session of that id, which holds its refresh tokens too.
CREATE TABLE okt_system.oauth_grants (
    id           uuid        PRIMARY KEY REFERENCES okt_system.sessions ON DELETE CASCADE,
    client_id    text        NOT NULL REFERENCES okt_system.oauth_clients ON DELETE CASCADE,
    scope        text[]      NOT NULL,
    resource     text        NOT NULL,
    -- Null is all repositories, also later ones.
    repositories uuid[],
    last_used_at timestamptz
);
CREATE INDEX oauth_grants_client_id_idx ON okt_system.oauth_grants (client_id);

CREATE TABLE okt_system.oauth_codes (
    hash           bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    grant_id       uuid        NOT NULL REFERENCES okt_system.oauth_grants ON DELETE CASCADE,
    redirect_uri   text        NOT NULL,
    code_challenge text        NOT NULL,
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz
);
CREATE INDEX oauth_codes_grant_id_idx ON okt_system.oauth_codes (grant_id);

-- Refresh tokens that have run out are swept while their session goes on.
CREATE INDEX refresh_tokens_expires_at_idx ON okt_system.refresh_tokens (expires_at);
