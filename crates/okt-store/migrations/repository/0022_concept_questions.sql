-- The question that was asked about a fact and those of its batch. The contexts of the repository are a part of it, and may
-- change before the answer is used: a job that begins anew finds the answer all the same.
-- With how many facts it was about: facts may go meanwhile, and then the numbers in the answer mean others.
ALTER TABLE okt_repository.concept_readings
    ADD COLUMN question bytea,
    ADD COLUMN asked    integer;
