-- The newest games of a kind, of which a run may have few.
CREATE INDEX games_of_kind ON games (run_id, kind, id);
