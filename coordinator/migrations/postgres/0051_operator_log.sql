-- What operators did has a name of its own: `audit` had nothing to do with `audits`.
ALTER TABLE audit RENAME TO operator_log;
-- The network that an operator rejected, or made best again, and from which one best was moved then.
ALTER TABLE operator_log ADD COLUMN network BIGINT;
ALTER TABLE operator_log ADD COLUMN from_network BIGINT;
-- Earlier versions wrote them into the sentence only.
UPDATE operator_log SET network = CAST(substring(detail FROM '^network ([0-9]+):') AS BIGINT)
WHERE action = 'reject-network';
UPDATE operator_log SET
  from_network = CAST(substring(detail FROM '^best from network ([0-9]+) to network [0-9]+,') AS BIGINT),
  network = CAST(substring(detail FROM '^best from network [0-9]+ to network ([0-9]+),') AS BIGINT)
WHERE action = 'roll-back';
