-- The tally of a decided match counts pairs before this one; all that it has, where there is none.
ALTER TABLE matches ADD COLUMN decided_pairs BIGINT;
