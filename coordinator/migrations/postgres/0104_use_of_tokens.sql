-- When a token was last used, to ten minutes. Of tokens of workers it is missing: `workers` says when these were heard.
ALTER TABLE tokens ADD COLUMN used_at BIGINT;
