-- Leases of a contributor that are out, or were given back before their time.
DROP INDEX jobs_open_of_user;
CREATE INDEX jobs_held_of_user ON jobs (user_id, expires_at, worker) WHERE state <> 'done';
