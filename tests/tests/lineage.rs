//! The lab's trainings of AlphaZero's line, with the real trainer.

use std::fs;

use anyhow::ensure;
use rookery_tests::programs::run;

/// A game of people, whose ratings say how much its moves count.
const PEOPLE: &str = "[Event \"a\"]\n[Result \"1-0\"]\n[WhiteElo \"2000\"]\n[BlackElo \"1900\"]\n\n\
                      1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n\n";

#[test]
fn a_network_is_trained_by_one_command_and_plays() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = |name: &str| dir.path().join(name);
    let shown = |name: &str| path(name).display().to_string();
    // A batch has 256 positions, and a game seven.
    fs::write(path("people.pgn"), PEOPLE.repeat(80))?;
    let pgn = shown("people.pgn");
    for (system, flags) in [("deltazero", &["--pgn", &pgn][..]), ("thesis", &[])] {
        let (folder, network) = (shown(system), shown(&format!("{system}.safetensors")));
        let mut line = vec!["train", system, "--dir", &folder, "--output", &network];
        line.extend(flags);
        let length = "--games 2 --round-games 2 --round-steps 2 --visits 2 --ply-limit 10 --evaluation-games 2";
        line.extend(length.split(' '));
        line.extend("--shape 1x8 --device cpu --train-device cpu --threads 1".split(' '));
        let table = run("rookery-lab", &line)?;
        ensure!(table.contains("| White | 1 |"), "{table}");
        let read = |name: &str| fs::read(path(system).join(name));
        ensure!(read("round-00001.safetensors")? == fs::read(&network)?);
        ensure!(read("round-00001.safetensors")? != read("random.safetensors")?);
        ensure!(path(system).join("warm.safetensors").exists() == (system == "deltazero"));
        let agent = format!("{system}:{network}@2");
        let line = "--games 2 --ply-limit 10 --device cpu --threads 1".split(' ');
        let line = ["match", &agent, "random"].into_iter().chain(line);
        let result = run("rookery-lab", &line.collect::<Vec<_>>())?;
        ensure!(result.contains("| both | 2 |"), "{result}");
    }
    Ok(())
}
