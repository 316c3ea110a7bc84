-- A chunk was chosen to be searched again by others. What comes after `opened_at` follows from
-- opinions.
CREATE TABLE audits (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL UNIQUE REFERENCES chunks (sequence),
    user_id INTEGER NOT NULL REFERENCES users (id), -- whose chunk it is
    cause TEXT NOT NULL, -- sampled, scrutiny, drift
    opened_at INTEGER NOT NULL,
    plan TEXT, -- JSON, while the audit is open and its chunk has been read
    job_id BLOB, -- the auditor's job at present
    state TEXT NOT NULL, -- open, passed, failed, void
    decided_by INTEGER REFERENCES chunks (sequence) -- the auditor's chunk that decided
);
CREATE INDEX audits_open ON audits (run_id, id) WHERE state = 'open';
CREATE INDEX audits_planned ON audits (run_id, id) WHERE state = 'open' AND plan IS NOT NULL;
CREATE INDEX audits_of_user ON audits (user_id, decided_by);

-- What one chunk of an auditor says; a job may end in several.
CREATE TABLE audit_parts (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (sequence),
    job_id BLOB NOT NULL REFERENCES jobs (id),
    plies INTEGER NOT NULL,
    policy REAL NOT NULL,
    value REAL NOT NULL
);
CREATE INDEX audit_parts_of_job ON audit_parts (job_id);

-- What an auditor's whole job says.
CREATE TABLE audit_opinions (
    job_id BLOB PRIMARY KEY REFERENCES jobs (id),
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    user_id INTEGER NOT NULL REFERENCES users (id), -- the auditor
    trusted INTEGER NOT NULL,
    plies INTEGER NOT NULL,
    policy REAL NOT NULL,
    value REAL NOT NULL,
    finding TEXT NOT NULL,
    given_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_opinions_of_audit ON audit_opinions (audit_id);

-- What audits have shown of contributors: sums over audits.
CREATE TABLE track_records (
    user_id INTEGER PRIMARY KEY REFERENCES users (id),
    passed INTEGER NOT NULL, -- since the last that failed
    failed INTEGER NOT NULL
);

-- Contributors put into quarantine and cleared, in order.
CREATE TABLE quarantines (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    quarantined INTEGER NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX quarantines_of_user ON quarantines (user_id, id);

-- Chunks taken out of training, matches and ratings, and put back, in order.
CREATE TABLE holds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL REFERENCES chunks (sequence),
    held INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX holds_of_run ON holds (run_id, id);

-- Whether the last of the chunk's holds holds it.
ALTER TABLE chunks ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
CREATE INDEX chunks_of_user ON chunks (user_id, sequence);
