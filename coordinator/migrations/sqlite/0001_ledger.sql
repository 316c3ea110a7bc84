-- Facts are appended and never edited; sums (marked so) follow from them.
-- Times are milliseconds since 1970 in UTC; hashes and job identifiers are raw bytes.

CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    blocked INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
);

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    hash BLOB NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    scopes TEXT NOT NULL, -- names separated by spaces
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
);
CREATE INDEX tokens_of_user ON tokens (user_id);

-- What operators did.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    params TEXT NOT NULL, -- JSON
    best INTEGER, -- a network's number
    created_at INTEGER NOT NULL,
    -- sums over networks and chunks
    networks INTEGER NOT NULL DEFAULT 0,
    games INTEGER NOT NULL DEFAULT 0,
    positions INTEGER NOT NULL DEFAULT 0,
    training_positions INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0,
    chunk_bytes INTEGER NOT NULL DEFAULT 0,
    -- match games since the ratings were last fitted
    unrated_games INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE networks (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    spec TEXT NOT NULL, -- JSON
    status TEXT NOT NULL,
    gate_id INTEGER REFERENCES matches (id),
    submitted_by INTEGER NOT NULL REFERENCES users (id),
    submitted_at INTEGER NOT NULL,
    match_seed INTEGER NOT NULL,
    training_games INTEGER NOT NULL DEFAULT 0, -- sum
    PRIMARY KEY (run_id, number),
    UNIQUE (run_id, hash)
) WITHOUT ROWID;
CREATE INDEX networks_by_hash ON networks (hash);

CREATE TABLE matches (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    purpose TEXT NOT NULL,
    status TEXT NOT NULL,
    candidate INTEGER NOT NULL,
    opponent INTEGER NOT NULL,
    rule TEXT NOT NULL, -- JSON
    pair_limit INTEGER NOT NULL, -- no more pairs are ever needed
    seed INTEGER NOT NULL,
    next_pair INTEGER NOT NULL DEFAULT 0,
    opened_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by_chunk INTEGER, -- the tally counts chunks up to this one
    reason TEXT,
    -- sums over complete pairs
    wins INTEGER NOT NULL DEFAULT 0,
    draws INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    pairs_0 INTEGER NOT NULL DEFAULT 0,
    pairs_1 INTEGER NOT NULL DEFAULT 0,
    pairs_2 INTEGER NOT NULL DEFAULT 0,
    pairs_3 INTEGER NOT NULL DEFAULT 0,
    pairs_4 INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX matches_of_run ON matches (run_id, status);

CREATE TABLE jobs (
    id BLOB PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    kind TEXT NOT NULL,
    network INTEGER NOT NULL, -- the only one, or the candidate
    match_id INTEGER REFERENCES matches (id),
    seed INTEGER NOT NULL,
    work TEXT NOT NULL, -- JSON
    games INTEGER NOT NULL,
    games_counted INTEGER NOT NULL DEFAULT 0, -- sum
    lease_ms INTEGER NOT NULL,
    leased_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL -- open, done, returned
) WITHOUT ROWID;
CREATE INDEX jobs_open ON jobs (run_id, expires_at) WHERE state = 'open';

-- A pair that was handed out: which job plays it now, and how its games went in that job.
CREATE TABLE match_pairs (
    match_id INTEGER NOT NULL REFERENCES matches (id),
    pair INTEGER NOT NULL,
    job_id BLOB NOT NULL REFERENCES jobs (id) DEFERRABLE INITIALLY DEFERRED,
    white_score INTEGER, -- 0, 1, 2 half points of the candidate with White
    black_score INTEGER,
    PRIMARY KEY (match_id, pair)
) WITHOUT ROWID;
CREATE INDEX match_pairs_unfinished ON match_pairs (match_id, pair)
    WHERE white_score IS NULL OR black_score IS NULL;

CREATE TABLE chunks (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    hash BLOB NOT NULL UNIQUE,
    job_id BLOB NOT NULL REFERENCES jobs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL,
    network INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    backend TEXT NOT NULL,
    worker_version TEXT NOT NULL,
    accepted_at INTEGER NOT NULL
);
CREATE INDEX chunks_of_run ON chunks (run_id, sequence);
CREATE INDEX chunks_by_time ON chunks (run_id, accepted_at);

CREATE TABLE games (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL REFERENCES chunks (sequence),
    place INTEGER NOT NULL, -- in the chunk
    job_id BLOB NOT NULL,
    game_index INTEGER NOT NULL, -- in the job
    kind TEXT NOT NULL,
    white INTEGER NOT NULL,
    black INTEGER NOT NULL,
    match_id INTEGER,
    pair INTEGER,
    puzzle TEXT,
    solved INTEGER,
    result TEXT NOT NULL,
    termination TEXT NOT NULL,
    plies INTEGER NOT NULL,
    fingerprint BLOB,
    UNIQUE (job_id, game_index)
);
CREATE UNIQUE INDEX games_are_unique ON games (run_id, fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX games_of_match ON games (match_id) WHERE match_id IS NOT NULL;
CREATE INDEX games_of_run ON games (run_id, id);
CREATE INDEX games_of_white ON games (run_id, white, id);
CREATE INDEX games_of_black ON games (run_id, black, id);

-- Sums over chunks, by contributor.
CREATE TABLE credits (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    PRIMARY KEY (run_id, user_id)
) WITHOUT ROWID;

-- Sums over match games, by pair of networks: a < b, results as a sees them.
CREATE TABLE head_to_head (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    PRIMARY KEY (run_id, a, b)
) WITHOUT ROWID;

CREATE TABLE ratings (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    network INTEGER NOT NULL,
    elo REAL NOT NULL,
    low REAL NOT NULL,
    high REAL NOT NULL,
    games INTEGER NOT NULL,
    fitted_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, network)
) WITHOUT ROWID;

CREATE TABLE puzzle_sets (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    puzzles INTEGER NOT NULL,
    added_at INTEGER NOT NULL,
    UNIQUE (run_id, hash)
);

-- `ordinal` counts a run's puzzles from 0 without gaps.
CREATE TABLE puzzles (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    ordinal INTEGER NOT NULL,
    set_id INTEGER NOT NULL REFERENCES puzzle_sets (id),
    puzzle TEXT NOT NULL, -- its identifier
    content TEXT NOT NULL, -- JSON
    PRIMARY KEY (run_id, ordinal),
    UNIQUE (run_id, puzzle)
) WITHOUT ROWID;

-- Sums over puzzle games, by network: kind is all, theme or rating.
CREATE TABLE puzzle_scores (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    network INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    tried INTEGER NOT NULL,
    solved INTEGER NOT NULL,
    PRIMARY KEY (run_id, network, kind, name)
) WITHOUT ROWID;

CREATE TABLE metrics (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    step INTEGER NOT NULL,
    content TEXT NOT NULL, -- JSON
    reported_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

-- Who was heard when; not a fact, only for the pages.
CREATE TABLE workers (
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    backend TEXT NOT NULL,
    version TEXT NOT NULL,
    evals_per_second REAL NOT NULL,
    job_kind TEXT,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (user_id, name)
) WITHOUT ROWID;
