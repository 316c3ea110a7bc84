-- The ledger's schema. Lower numbers than 100 were steps of builds before 0.1.0 (docs/run/upgrade.md).
--
-- Facts are appended and never edited; sums (marked so) follow from them.
-- Times are milliseconds since 1970 in UTC; hashes and job identifiers are raw bytes; flags are 0 or 1.
-- A column with a closed set of words has a CHECK: the words are those of an enum in Rust.

-- Identifies this ledger. The storage of networks and chunks is marked with it, so that no other ledger takes
-- it for its own.
CREATE TABLE ledger_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
);
INSERT INTO ledger_id (one, id) VALUES (1, lower(hex(randomblob(16))));

-- Where the ledger goes on, if it was copied into another database: it is served here no more. The
-- copy has no such row.
CREATE TABLE moved (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    target TEXT NOT NULL,
    at INTEGER NOT NULL
);

CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    skeleton TEXT NOT NULL UNIQUE, -- what names that look alike have in common (Unicode TR39)
    blocked INTEGER NOT NULL DEFAULT 0,
    -- Hash of the address block (24 bits of IPv4, 48 of IPv6) from which the user registered. Missing if an
    -- operator made the user, or the address is private.
    block INTEGER,
    created_at INTEGER NOT NULL
);
CREATE INDEX users_by_name ON users (lower(name)); -- names are looked up in any case

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

-- Codes with which people register; only the code's hash is kept.
CREATE TABLE invitations (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    note TEXT NOT NULL,
    uses INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);

CREATE TABLE invitation_uses (
    invitation_id INTEGER NOT NULL REFERENCES invitations (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    used_at INTEGER NOT NULL,
    PRIMARY KEY (invitation_id, user_id)
) WITHOUT ROWID;

-- What operators did.
CREATE TABLE operator_log (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL, -- a sentence for people
    network INTEGER, -- rejected, or made best again
    from_network INTEGER -- best before it
);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    title TEXT,
    contact TEXT,
    links TEXT NOT NULL DEFAULT '[]', -- JSON
    status TEXT NOT NULL CHECK (status IN ('open', 'paused')),
    params TEXT NOT NULL, -- JSON
    best INTEGER, -- a network's number
    signing_key TEXT, -- the key in use
    versions TEXT NOT NULL DEFAULT '{}', -- which workers are served, JSON
    created_at INTEGER NOT NULL,
    archived_at INTEGER, -- since then it is out of lists and gets no jobs
    deleted_at INTEGER, -- since then its rows are removed by and by
    -- The trainer's last report; not a fact, only for the pages.
    reported_step INTEGER,
    reported_at INTEGER,
    -- sums over networks and chunks
    networks INTEGER NOT NULL DEFAULT 0,
    games INTEGER NOT NULL DEFAULT 0,
    positions INTEGER NOT NULL DEFAULT 0,
    training_positions INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0,
    chunk_bytes INTEGER NOT NULL DEFAULT 0,
    -- match games since the ratings were last fitted
    unrated_games INTEGER NOT NULL DEFAULT 0,
    -- Fits of the ratings are numbered when they read the results: a later number replaces an earlier one, never
    -- the other way round.
    fits_begun INTEGER NOT NULL DEFAULT 0,
    fit_stored INTEGER NOT NULL DEFAULT 0
);

-- Public keys that sign a run's networks; the one with the highest number is in use.
CREATE TABLE run_keys (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    endorsement TEXT, -- by the key before
    added_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, number),
    UNIQUE (run_id, key)
) WITHOUT ROWID;

CREATE TABLE matches (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    purpose TEXT NOT NULL CHECK (purpose IN ('gate', 'rating')),
    status TEXT NOT NULL CHECK (status IN ('open', 'promoted', 'rejected', 'finished')),
    candidate INTEGER NOT NULL,
    opponent INTEGER NOT NULL,
    rule TEXT NOT NULL, -- JSON
    pair_limit INTEGER NOT NULL, -- no more pairs are ever needed
    seed INTEGER NOT NULL,
    next_pair INTEGER NOT NULL DEFAULT 0,
    opened_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by_chunk INTEGER, -- the tally counts chunks up to this one
    decided_pairs INTEGER, -- and pairs before this one; all of them if it is missing
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

CREATE TABLE networks (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    spec TEXT NOT NULL, -- JSON
    status TEXT NOT NULL
        CHECK (status IN ('initial', 'candidate', 'promoted', 'rejected', 'demoted', 'anchor')),
    gate_id INTEGER REFERENCES matches (id),
    submitted_by INTEGER NOT NULL REFERENCES users (id),
    submitted_at INTEGER NOT NULL,
    match_seed INTEGER NOT NULL,
    training_games INTEGER NOT NULL DEFAULT 0, -- sum
    positions INTEGER, -- the run's training positions when it was submitted
    name TEXT, -- an anchor's
    anchor_elo REAL, -- an anchor's Elo on a scale that others know; without it, it is rated as any other
    program TEXT, -- the built-in program that plays in the network's place
    PRIMARY KEY (run_id, number),
    UNIQUE (run_id, hash)
) WITHOUT ROWID;
CREATE INDEX networks_by_hash ON networks (hash);

-- Networks in the formats of other programs, as their trainers made them.
CREATE TABLE network_exports (
    network BLOB NOT NULL, -- the network's hash
    format TEXT NOT NULL CHECK (format IN ('lc0', 'onnx')),
    hash BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    submitted_by INTEGER NOT NULL REFERENCES users (id),
    submitted_at INTEGER NOT NULL,
    PRIMARY KEY (network, format)
) WITHOUT ROWID;

CREATE TABLE network_signatures (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    network BLOB NOT NULL, -- its file's hash
    key TEXT NOT NULL,
    signature TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, network, key)
) WITHOUT ROWID;

-- What many leases have in common, by its SHA-256: the rules of their games (JSON) and opening books (a
-- line each). A lease names it, so that its work takes few bytes.
CREATE TABLE lease_values (
    hash BLOB PRIMARY KEY,
    content TEXT NOT NULL
);

CREATE TABLE jobs (
    id BLOB PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    protocol INTEGER NOT NULL DEFAULT 1, -- the worker's: it decides which moves the games must have
    kind TEXT NOT NULL CHECK (kind IN ('self-play', 'puzzles', 'match', 'audit')),
    network INTEGER NOT NULL, -- the only one, or the candidate
    match_id INTEGER REFERENCES matches (id),
    seed INTEGER NOT NULL,
    work TEXT NOT NULL, -- JSON
    games INTEGER NOT NULL,
    games_counted INTEGER NOT NULL DEFAULT 0, -- sum
    lease_ms INTEGER NOT NULL,
    leased_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'returned'))
) WITHOUT ROWID;
CREATE INDEX jobs_open ON jobs (run_id, expires_at) WHERE state = 'open';
-- Leases of a contributor that are out, or were given back before their time.
CREATE INDEX jobs_held_of_user ON jobs (user_id, expires_at, worker) WHERE state <> 'done';
-- Whether a network has been handed out with puzzles yet.
CREATE INDEX jobs_with_puzzles ON jobs (run_id, network) WHERE kind = 'puzzles';
-- Jobs without a game, by the end of their lease: they are removed after a while.
CREATE INDEX jobs_unplayed ON jobs (expires_at, id) WHERE games_counted = 0;

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
CREATE INDEX match_pairs_of_job ON match_pairs (job_id);

CREATE TABLE chunks (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    hash BLOB NOT NULL UNIQUE,
    job_id BLOB NOT NULL REFERENCES jobs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL CHECK (kind IN ('self-play', 'puzzles', 'match', 'audit')),
    network INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    backend TEXT NOT NULL,
    worker_version TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0, -- whether the last of its holds holds it
    searches TEXT -- sums of a self-play chunk's searches, JSON: they show drift
);
CREATE INDEX chunks_of_run ON chunks (run_id, sequence);
CREATE INDEX chunks_by_time ON chunks (run_id, accepted_at);
CREATE INDEX chunks_of_user ON chunks (user_id, sequence);
CREATE INDEX chunks_of_job ON chunks (job_id);
CREATE INDEX chunks_held ON chunks (user_id, sequence) WHERE held <> 0;

CREATE TABLE games (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL REFERENCES chunks (sequence),
    place INTEGER NOT NULL, -- in the chunk
    job_id BLOB NOT NULL,
    game_index INTEGER NOT NULL, -- in the job
    kind TEXT NOT NULL CHECK (kind IN ('self-play', 'puzzles', 'match', 'audit')),
    white INTEGER NOT NULL,
    black INTEGER NOT NULL,
    match_id INTEGER,
    pair INTEGER,
    puzzle TEXT,
    solved INTEGER,
    result TEXT NOT NULL CHECK (result IN ('white-wins', 'black-wins', 'draw')),
    termination TEXT NOT NULL CHECK (termination IN ('checkmate', 'stalemate', 'threefold', 'fifty-move',
        'insufficient-material', 'resignation', 'adjudication', 'ply-limit')),
    plies INTEGER NOT NULL,
    fingerprint BLOB,
    UNIQUE (job_id, game_index)
);
CREATE UNIQUE INDEX games_are_unique ON games (run_id, fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX games_of_match ON games (match_id) WHERE match_id IS NOT NULL;
CREATE INDEX games_of_run ON games (run_id, id);
CREATE INDEX games_of_kind ON games (run_id, kind, id);
CREATE INDEX games_of_white ON games (run_id, white, id);
CREATE INDEX games_of_black ON games (run_id, black, id);

-- Sums over chunks, by contributor. Positions include those of audits.
CREATE TABLE credits (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    audits INTEGER NOT NULL DEFAULT 0, -- games that were searched again
    audit_positions INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, user_id)
) WITHOUT ROWID;

-- The same by the hour and by the day, in UTC, in which the chunks were accepted.
CREATE TABLE credit_spans (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    length INTEGER NOT NULL, -- milliseconds of an hour or of a day
    begins INTEGER NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id),
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    audits INTEGER NOT NULL DEFAULT 0,
    audit_positions INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, length, begins, user_id)
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

-- Sums over puzzle games, by network.
CREATE TABLE puzzle_scores (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    network INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('all', 'theme', 'rating')),
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

-- When each worker was last heard of; not a fact, only for the pages.
CREATE TABLE workers (
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    backend TEXT NOT NULL,
    version TEXT NOT NULL,
    evals_per_second REAL NOT NULL,
    job_kind TEXT CHECK (job_kind IN ('self-play', 'puzzles', 'match', 'audit')),
    last_seen INTEGER NOT NULL,
    block INTEGER, -- hash of its address block, as of a user's
    PRIMARY KEY (user_id, name)
) WITHOUT ROWID;

-- Workers that get no jobs, while their contributors' other workers do.
CREATE TABLE worker_blocks (
    user_id INTEGER NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (user_id, worker)
) WITHOUT ROWID;

-- A chunk was chosen to be searched again by others. What comes after `opened_at` follows from
-- their opinions.
CREATE TABLE audits (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL UNIQUE REFERENCES chunks (sequence),
    user_id INTEGER NOT NULL REFERENCES users (id), -- whose chunk it is
    cause TEXT NOT NULL CHECK (cause IN ('sampled', 'scrutiny', 'drift', 'cleared')),
    -- If a contributor has more open sampled audits than the cap, those with the highest stay open.
    luck REAL NOT NULL DEFAULT 0,
    opened_at INTEGER NOT NULL,
    plan TEXT, -- JSON, while the audit is open and its chunk has been read
    job_id BLOB, -- the auditor's job at present
    drawn_for INTEGER REFERENCES users (id), -- the contributor drawn to make it
    drawn_until INTEGER, -- until then it waits for that contributor
    state TEXT NOT NULL CHECK (state IN ('open', 'passed', 'failed', 'void')),
    decided_by INTEGER REFERENCES chunks (sequence) -- the auditor's chunk that decided
);
CREATE INDEX audits_open ON audits (run_id, id) WHERE state = 'open';
CREATE INDEX audits_planned ON audits (run_id, id) WHERE state = 'open' AND plan IS NOT NULL;
CREATE INDEX audits_of_user ON audits (user_id, decided_by);
CREATE INDEX audits_open_of_user ON audits (user_id, run_id, luck DESC)
    WHERE state = 'open' AND cause = 'sampled';
-- Audits that are leased: few, among thousands that wait. Every request for an audit counts its
-- contributor's, and every chunk of an audit looks for its own.
CREATE INDEX audits_given ON audits (job_id) WHERE state = 'open' AND job_id IS NOT NULL;
CREATE INDEX audits_drawn ON audits (drawn_for) WHERE state = 'open' AND drawn_for IS NOT NULL;

-- Distances that one chunk of an auditor measured; a job may end in several chunks.
CREATE TABLE audit_parts (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (sequence),
    job_id BLOB NOT NULL REFERENCES jobs (id),
    plies INTEGER NOT NULL,
    policy REAL NOT NULL,
    value REAL NOT NULL,
    visits REAL NOT NULL DEFAULT 0,
    best REAL NOT NULL DEFAULT 0, -- best moves' values
    choice REAL NOT NULL DEFAULT 0 -- which moves would have been played
);
CREATE INDEX audit_parts_of_job ON audit_parts (job_id);

-- An auditor's opinion: what the whole job says.
CREATE TABLE audit_opinions (
    job_id BLOB PRIMARY KEY REFERENCES jobs (id),
    audit_id INTEGER NOT NULL REFERENCES audits (id),
    user_id INTEGER NOT NULL REFERENCES users (id), -- the auditor
    trusted INTEGER NOT NULL,
    plies INTEGER NOT NULL,
    policy REAL NOT NULL,
    value REAL NOT NULL,
    visits REAL NOT NULL DEFAULT 0,
    best REAL NOT NULL DEFAULT 0,
    choice REAL NOT NULL DEFAULT 0,
    finding TEXT NOT NULL CHECK (finding IN ('agrees', 'differs')),
    given_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_opinions_of_audit ON audit_opinions (audit_id);
CREATE INDEX audit_opinions_by_time ON audit_opinions (given_at);

-- What audits have shown of contributors: sums over audits.
CREATE TABLE track_records (
    user_id INTEGER PRIMARY KEY REFERENCES users (id),
    passed INTEGER NOT NULL, -- since the last that failed
    part INTEGER NOT NULL DEFAULT 0, -- positions of passed audits that do not make a whole pass yet
    vouched INTEGER NOT NULL DEFAULT 0, -- those passed on a trusted auditor's word, or that of one vouched for
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

-- Chunks excluded from training, matches and ratings, and included again, in order.
CREATE TABLE holds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    chunk INTEGER NOT NULL REFERENCES chunks (sequence),
    held INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX holds_of_run ON holds (run_id, id);
CREATE INDEX holds_of_chunk ON holds (chunk, id);

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

-- In what contributors' games looked unlike everybody else's when that was last found; for
-- operators to read.
CREATE TABLE drift_findings (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    worker TEXT NOT NULL,
    backend TEXT NOT NULL,
    feature TEXT NOT NULL,
    z REAL NOT NULL, -- standard errors from the others' median
    found_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, user_id, worker, backend, feature)
) WITHOUT ROWID;
CREATE INDEX drift_findings_of_user ON drift_findings (user_id);
