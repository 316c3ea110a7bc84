-- Lists of a run's matches, newest first: all, by purpose, and by verdict.
CREATE INDEX matches_newest ON matches (run_id, id);
CREATE INDEX matches_of_purpose ON matches (run_id, purpose, id);
DROP INDEX matches_of_run;
CREATE INDEX matches_of_run ON matches (run_id, status, id);
