-- Which user was renamed: until now only a sentence for people named the number, and deleting a user parsed it.
ALTER TABLE operator_log ADD COLUMN user_id BIGINT REFERENCES users (id);
UPDATE operator_log SET user_id = CAST(substring(detail FROM '^user ([0-9]+) is now ') AS BIGINT)
WHERE action = 'rename-user';
CREATE INDEX operator_log_of_user ON operator_log (user_id) WHERE user_id IS NOT NULL;
