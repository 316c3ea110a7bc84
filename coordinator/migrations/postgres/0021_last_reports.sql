-- What a trainer reported last: the last step of it, and when; not a fact, only for the pages.
ALTER TABLE runs ADD COLUMN reported_step BIGINT;
ALTER TABLE runs ADD COLUMN reported_at BIGINT;
