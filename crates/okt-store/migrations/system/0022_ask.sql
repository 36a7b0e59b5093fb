-- Who may have a model answer questions, and what each person may spend on that in a day. The table has one row for each
-- repository.
ALTER TABLE okt_system.repository_settings ADD COLUMN ask_viewers boolean NOT NULL DEFAULT false;
-- Null: what the installation gives each person.
ALTER TABLE okt_system.repository_settings
    ADD COLUMN ask_person_micro_usd bigint
        CONSTRAINT repository_settings_ask_person_micro_usd_check CHECK (ask_person_micro_usd >= 0);
