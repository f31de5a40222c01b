//! Running a part of a plan with another memory pool.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;

/// The same context with other memory.
pub(super) fn with_pool(context: &TaskContext, pool: Arc<dyn MemoryPool>) -> Arc<TaskContext> {
    with_runtime(context, RuntimeEnv { memory_pool: pool, ..RuntimeEnv::clone(&context.runtime_env()) })
}

pub(super) fn with_runtime(context: &TaskContext, runtime: RuntimeEnv) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        Arc::new(runtime),
    ))
}
