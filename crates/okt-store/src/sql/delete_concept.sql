-- A concept that nothing speaks of, with what refers to it.
WITH former AS (DELETE FROM okt_repository.former_names WHERE repository_id = $1 AND concept_no = $2),
words AS (DELETE FROM okt_repository.concept_words WHERE repository_id = $1 AND concept_no = $2),
aliases AS (DELETE FROM okt_repository.rejected_aliases WHERE repository_id = $1 AND concept_no = $2),
links AS (DELETE FROM okt_repository.rejected_links WHERE repository_id = $1 AND (concept_no = $2 OR instead_no = $2)),
parted AS (DELETE FROM okt_repository.parted_concepts WHERE repository_id = $1 AND (concept_no = $2 OR other_no = $2)),
verdicts AS (DELETE FROM okt_repository.concept_verdicts WHERE repository_id = $1 AND (one_no = $2 OR other_no = $2)),
states AS (DELETE FROM okt_repository.summary_states WHERE repository_id = $1 AND concept_no = $2),
summaries AS (DELETE FROM okt_repository.concept_summaries WHERE repository_id = $1 AND concept_no = $2),
summary_facts AS (DELETE FROM okt_repository.summary_facts WHERE repository_id = $1 AND concept_no = $2),
merges AS (DELETE FROM okt_repository.concept_merges WHERE repository_id = $1 AND (concept_no = $2 OR into_no = $2))
DELETE FROM okt_repository.concepts WHERE repository_id = $1 AND no = $2
