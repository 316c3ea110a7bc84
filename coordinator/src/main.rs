//! coordinator
fn main() {}
