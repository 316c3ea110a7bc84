-- Workers that get no jobs, while their contributors' other workers do.
CREATE TABLE worker_blocks (
    user_id BIGINT NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, worker)
);
