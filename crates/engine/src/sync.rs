//! What committing threads meet at. The model of the commit pipeline (`tests/pipeline_model`) has shuttle's in its place.

pub use parking_lot::Mutex;
