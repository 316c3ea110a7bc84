-- Workers that get no jobs, while their contributors' other workers do.
CREATE TABLE worker_blocks (
    user_id INTEGER NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (user_id, worker)
) WITHOUT ROWID;
