//! trainer
fn main() {}
