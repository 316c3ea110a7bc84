-- Whether a network has been handed out with puzzles yet.
CREATE INDEX jobs_with_puzzles ON jobs (run_id, network) WHERE kind = 'puzzles';
