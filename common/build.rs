//! Compiles the chunk format's protobuf schema; no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/chunk.proto");
    let descriptors = protox::compile(["proto/chunk.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
