-- What the program at the other end calls itself.
ALTER TABLE okt_system.audit ADD COLUMN user_agent text;
