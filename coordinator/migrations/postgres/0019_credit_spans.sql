-- Sums over chunks, by contributor and by the hour and the day, in UTC, in which they were accepted:
-- credit over recent time.
CREATE TABLE credit_spans (
    run_id BIGINT NOT NULL REFERENCES runs (id),
    length BIGINT NOT NULL, -- milliseconds of an hour or of a day
    begins BIGINT NOT NULL,
    user_id BIGINT NOT NULL REFERENCES users (id),
    games BIGINT NOT NULL,
    positions BIGINT NOT NULL,
    PRIMARY KEY (run_id, length, begins, user_id)
);
INSERT INTO credit_spans (run_id, length, begins, user_id, games, positions)
    SELECT run_id, column1, accepted_at - accepted_at % column1, user_id,
        CAST(sum(CASE WHEN kind = 'audit' THEN 0 ELSE games END) AS BIGINT),
        CAST(sum(positions) AS BIGINT)
    FROM chunks, (VALUES (3600000), (86400000)) AS spans
    WHERE held = 0
    GROUP BY run_id, column1, accepted_at - accepted_at % column1, user_id;
