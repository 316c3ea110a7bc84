-- The Elo that an operator gives an anchor, on a scale that others know; without it, it is rated as any other.
ALTER TABLE networks ADD COLUMN anchor_elo DOUBLE PRECISION;
