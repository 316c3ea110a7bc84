-- The games of a chunk: a contributor's games are found by their chunks, and one job may come in many.
CREATE INDEX games_of_chunk ON games (chunk);
