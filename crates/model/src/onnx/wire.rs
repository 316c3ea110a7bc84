//! The protobuf messages.

#![expect(unreachable_pub, reason = "generated from proto/onnx.proto")]

include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
