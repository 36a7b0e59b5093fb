-- Null columns without a default: nothing is rewritten, and the locks are held for a moment.

-- Since when nobody can use the account. Whoever looks up a session, a key or a grant reads it in the same statement.
ALTER TABLE okt_system.users ADD COLUMN disabled_at timestamptz;

-- What a person sees of their sessions. The use is noted every few minutes at most; null is when it began.
ALTER TABLE okt_system.sessions
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN address      text,
    ADD COLUMN user_agent   text;
