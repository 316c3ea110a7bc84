-- Which of a contributor's audits stay open where there are too many: those with most of it.
ALTER TABLE audits ADD COLUMN luck DOUBLE PRECISION NOT NULL DEFAULT 0;
CREATE INDEX audits_open_of_user ON audits (user_id, run_id, luck DESC)
    WHERE state = 'open' AND cause = 'sampled';
