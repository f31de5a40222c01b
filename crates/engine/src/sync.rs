//! What threads meet at: those that commit, and those that wait for rows. The models of the commit pipeline
//! (`tests/pipeline_model`) and of row locks (`tests/lock_model`) have shuttle's in its place.

pub use parking_lot::{Condvar, Mutex, MutexGuard};
