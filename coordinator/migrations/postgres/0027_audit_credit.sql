-- What of the credit is audits: games that were searched again, and their positions, which `positions`
-- holds as well.
ALTER TABLE credits ADD COLUMN audits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE credits ADD COLUMN audit_positions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE credit_spans ADD COLUMN audits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE credit_spans ADD COLUMN audit_positions BIGINT NOT NULL DEFAULT 0;
UPDATE credits SET audits = given.audits, audit_positions = given.positions
    FROM (SELECT run_id, user_id, CAST(sum(games) AS BIGINT) AS audits, CAST(sum(positions) AS BIGINT) AS positions
        FROM chunks WHERE kind = 'audit' AND held = 0 GROUP BY run_id, user_id) AS given
    WHERE credits.run_id = given.run_id AND credits.user_id = given.user_id;
UPDATE credit_spans SET audits = given.audits, audit_positions = given.positions
    FROM (SELECT run_id, column1 AS length, accepted_at - accepted_at % column1 AS begins, user_id,
            CAST(sum(games) AS BIGINT) AS audits, CAST(sum(positions) AS BIGINT) AS positions
        FROM chunks, (VALUES (3600000), (86400000)) AS spans
        WHERE kind = 'audit' AND held = 0
        GROUP BY run_id, column1, accepted_at - accepted_at % column1, user_id) AS given
    WHERE credit_spans.run_id = given.run_id AND credit_spans.length = given.length
        AND credit_spans.begins = given.begins AND credit_spans.user_id = given.user_id;
