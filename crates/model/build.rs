//! Compiles the schemas of Lc0's and ONNX's files; no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schemas = ["proto/lc0_net.proto", "proto/onnx.proto"];
    for schema in schemas {
        println!("cargo::rerun-if-changed={schema}");
    }
    let descriptors = protox::compile(schemas, ["proto"])?;
    prost_build::Config::new()
        .bytes(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
