-- The last failed audit of a contributor is looked for with each verdict. Most have none.
CREATE INDEX audits_failed_of_user ON audits (user_id, decided_by) WHERE state = 'failed';
