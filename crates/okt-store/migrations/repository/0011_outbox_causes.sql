ALTER TABLE okt_repository.outbox
    -- The job whose effect asked for this one; null when a person or the service did.
    ADD COLUMN caused_by uuid,
    -- Nobody was told its id: beside a twin that waits it is dropped and not recorded.
    ADD COLUMN internal boolean NOT NULL DEFAULT false;
