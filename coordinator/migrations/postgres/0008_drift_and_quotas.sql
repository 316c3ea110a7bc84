-- A self-play chunk's searches in sums, JSON: with its games they tell who drifts.
ALTER TABLE chunks ADD COLUMN searches TEXT;

-- In what contributors' games looked unlike everybody else's when that was last found; for
-- operators to read.
CREATE TABLE drift_findings (
    run_id BIGINT NOT NULL REFERENCES runs (id),
    user_id BIGINT NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    backend TEXT NOT NULL,
    feature TEXT NOT NULL,
    z DOUBLE PRECISION NOT NULL, -- standard errors from the others' median
    found_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, user_id, worker, backend, feature)
);
CREATE INDEX drift_findings_of_user ON drift_findings (user_id);

-- What of a contributor is held, and why.
CREATE INDEX chunks_held ON chunks (user_id, sequence) WHERE held <> 0;
CREATE INDEX holds_of_chunk ON holds (chunk, id);

-- Leases of a contributor that are out.
CREATE INDEX jobs_open_of_user ON jobs (user_id, expires_at, worker) WHERE state = 'open';
