//! The public gRPC worker protocol, generated from `proto/`.

#[expect(clippy::all, clippy::pedantic, missing_docs, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("converge.worker.v1");
}

/// The protocol revision this build speaks.
pub const REVISION: u32 = 1;

/// Largest payload of one frame, in bytes; larger inputs and outcomes go in chunks.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
