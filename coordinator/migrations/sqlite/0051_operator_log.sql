-- What operators did has a name of its own: `audit` had nothing to do with `audits`.
ALTER TABLE audit RENAME TO operator_log;
-- The network that an operator rejected, or made best again, and from which one best was moved then.
ALTER TABLE operator_log ADD COLUMN network INTEGER;
ALTER TABLE operator_log ADD COLUMN from_network INTEGER;
-- Earlier versions wrote them into the sentence only. CAST reads the digits with which a text begins.
UPDATE operator_log SET network = CAST(substr(detail, 9) AS INTEGER)
WHERE action = 'reject-network' AND detail GLOB 'network [0-9]*:*';
UPDATE operator_log SET from_network = CAST(substr(detail, 19) AS INTEGER),
  network = CAST(substr(detail, instr(detail, ' to network ') + 12) AS INTEGER)
WHERE action = 'roll-back' AND detail GLOB 'best from network [0-9]* to network [0-9]*,*';
