//! Embeds the board of the page "Play": the compressed files that `scripts/web` puts into `web/bundle`.
//!
//! Without them, which need Node.js, the coordinator is built without the board, and the page says so.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo looks at all files in the folder, which is in the repository without them.
    println!("cargo::rerun-if-changed=web/bundle");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("web/bundle");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".br").map(str::to_owned));
    }
    let mut list = String::from("&[\n");
    for name in names {
        let path = |encoding: &str| folder.join(format!("{name}.{encoding}"));
        let (brotli, gzip) = (path("br"), path("gz"));
        writeln!(
            list,
            "    File {{ name: {name:?}, brotli: include_bytes!({brotli:?}), gzip: include_bytes!({gzip:?}) }},"
        )?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("bundle.rs"), list)?;
    Ok(())
}
