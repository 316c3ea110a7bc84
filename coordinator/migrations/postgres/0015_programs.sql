-- The program that plays in the network's place, by its name; networks have none.
ALTER TABLE networks ADD COLUMN program TEXT;
UPDATE networks SET program = concat_ws(':', CAST(spec AS JSON) #>> '{architecture,program}',
        CAST(spec AS JSON) #>> '{architecture,depth}')
    WHERE CAST(spec AS JSON) #>> '{architecture,kind}' = 'program';
