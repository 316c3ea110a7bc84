-- Jobs of which nothing came, by the end of their lease: they are removed after a while.
CREATE INDEX jobs_unplayed ON jobs (expires_at, id) WHERE games_counted = 0;
-- Whether anything refers to a job.
CREATE INDEX chunks_of_job ON chunks (job_id);
CREATE INDEX match_pairs_of_job ON match_pairs (job_id);
