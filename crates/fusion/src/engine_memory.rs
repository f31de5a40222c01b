//! The engine's memory budget as what DataFusion's operators reserve from.

use std::sync::Arc;

use avocet_engine::MemoryBudget;
use datafusion::common::{DataFusionError, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};

/// Queries take their share of the memory that tables, transactions and clients leave.
pub struct EngineMemory(pub Arc<MemoryBudget>);

impl std::fmt::Debug for EngineMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineMemory({:?})", self.0.in_use())
    }
}

impl std::fmt::Display for EngineMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "all queries: {} of {} bytes", self.reserved(), self.0.limit())
    }
}

impl MemoryPool for EngineMemory {
    fn name(&self) -> &str {
        "server"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.0.take(additional);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.0.release(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        if self.0.reserve(additional) {
            return Ok(());
        }
        let name = reservation.consumer().name();
        Err(resources_datafusion_err!(
            "the server's memory is used up: {name} asked for {additional} bytes more; {}",
            self.0.in_use()
        ))
    }

    fn reserved(&self) -> usize {
        self.0.in_use().queries
    }
}
