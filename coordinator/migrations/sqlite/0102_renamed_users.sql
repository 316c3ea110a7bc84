-- Which user was renamed: until now only a sentence for people named the number, and deleting a user parsed it.
ALTER TABLE operator_log ADD COLUMN user_id INTEGER REFERENCES users (id);
-- CAST reads the digits with which a text begins.
UPDATE operator_log SET user_id = CAST(substr(detail, 6) AS INTEGER)
WHERE action = 'rename-user' AND detail GLOB 'user [0-9]* is now *';
CREATE INDEX operator_log_of_user ON operator_log (user_id) WHERE user_id IS NOT NULL;
