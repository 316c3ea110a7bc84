-- The program that plays in the network's place, by its name; networks have none.
ALTER TABLE networks ADD COLUMN program TEXT;
UPDATE networks SET program = json_extract(spec, '$.architecture.program')
        || coalesce(':' || json_extract(spec, '$.architecture.depth'), '')
    WHERE json_extract(spec, '$.architecture.kind') = 'program';
