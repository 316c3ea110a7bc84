-- Sums over chunks, by contributor and by the hour and the day, in UTC, in which they were accepted:
-- credit over recent time.
CREATE TABLE credit_spans (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    length INTEGER NOT NULL, -- milliseconds of an hour or of a day
    begins INTEGER NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id),
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    PRIMARY KEY (run_id, length, begins, user_id)
) WITHOUT ROWID;
INSERT INTO credit_spans (run_id, length, begins, user_id, games, positions)
    SELECT run_id, column1, accepted_at - accepted_at % column1, user_id,
        sum(CASE WHEN kind = 'audit' THEN 0 ELSE games END), sum(positions)
    FROM chunks, (VALUES (3600000), (86400000)) AS spans
    WHERE held = 0
    GROUP BY run_id, column1, accepted_at - accepted_at % column1, user_id;
