-- Fits of a run's ratings are numbered when they read the results; a later number replaces an
-- earlier one, never the other way round.
ALTER TABLE runs ADD COLUMN fits_begun INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN fit_stored INTEGER NOT NULL DEFAULT 0;

-- Old chunks packed together. The chunk's row stays; its bytes are a part of the archive's.
CREATE TABLE archives (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    hash BLOB NOT NULL UNIQUE,
    bytes INTEGER NOT NULL,
    archived_at INTEGER NOT NULL
);
CREATE TABLE archived_chunks (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (sequence),
    archive_id INTEGER NOT NULL REFERENCES archives (id),
    begins INTEGER NOT NULL -- the byte of the archive at which the chunk begins
);
