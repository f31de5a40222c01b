//! Optimizer hints at work: variables that have another value for one statement.

use avocet_sql::parse::hints::{HintValue, Hints};
use avocet_types::{Datum, Value};

use super::state::{Condition, Hinted, Level, Session};
use super::variables::{VARIABLES, find};

/// The variables that SET_VAR may set: MySQL's list, and those that only Avocet has.
const HINTABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "avocet_point_path",
    "avocet_route",
    "big_tables",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "foreign_key_checks",
    "group_concat_max_len",
    "insert_id",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_sort_length",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "query_memory_limit",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_require_primary_key",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "timestamp",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "use_secondary_engine",
    "windowing_use_high_precision",
];

impl Session {
    /// Sets what a statement's hints say; to be taken back by `end_hints`.
    pub(super) fn begin_hints(&mut self, hints: Option<&Hints>) {
        let Some(hints) = hints else { return };
        let warning = |(errno, message): (u16, String)| Condition { level: Level::Warning, errno, message };
        let mut warnings = hints.warnings.clone();
        let mut before = Vec::new();
        for (name, value) in &hints.variables {
            if let Err(problem) = self.set_hinted(name, value, &mut before) {
                warnings.push(problem);
            }
        }
        self.refresh();
        // 0 leaves the session's limit as it is.
        if let Some(millis) = hints.max_execution_time.filter(|millis| *millis > 0) {
            self.settings.max_execution_time = Some(std::time::Duration::from_millis(millis));
        }
        let conditions = warnings.into_iter().map(warning).collect();
        self.hinted = Some(Box::new(Hinted { before, conditions }));
    }

    /// Sets a variable for one statement; `before` gets what is to be put back.
    fn set_hinted(
        &mut self,
        name: &str,
        value: &HintValue,
        before: &mut Vec<(usize, Value)>,
    ) -> Result<(), (u16, String)> {
        let Ok(position) = find(name) else {
            return Err((3128, format!("Unresolved name '{name}' for SET_VAR hint")));
        };
        if !HINTABLE.contains(&name) {
            return Err((3637, format!("Variable '{name}' cannot be set using SET_VAR hint.")));
        }
        let value: Value = match value {
            HintValue::Number(number) => i64::try_from(*number).map_or(Datum::UInt(*number), Datum::Int),
            HintValue::Decimal(number) => Datum::Double(*number),
            HintValue::Text(text) => Datum::Str(text.clone().into()),
        };
        let variable = &VARIABLES[position];
        let refused = |error: avocet_types::error::SqlError| (error.errno, error.message);
        let (accepted, clipped) = variable.accept(&value).map_err(refused)?;
        variable.check_value(&accepted).map_err(refused)?;
        before.extend(self.variables.own.put_with_others(position, accepted));
        match (clipped, value) {
            (true, Datum::Int(value)) => Err((1292, format!("Truncated incorrect {name} value: '{value}'"))),
            (true, Datum::UInt(value)) => Err((1292, format!("Truncated incorrect {name} value: '{value}'"))),
            _ => Ok(()),
        }
    }

    /// Takes back what the last statement's hints set, if it had any.
    pub(super) fn end_hints(&mut self) {
        if let Some(hinted) = self.hinted.take() {
            // The last first: a variable may have been set twice.
            for (position, value) in hinted.before.into_iter().rev() {
                self.variables.own.put(position, value);
            }
            self.refresh();
        }
    }

    /// The conditions of a statement that begins: none, but what its hints are warned of.
    pub(super) fn begin_conditions(&mut self) {
        self.take_condition_counts();
        self.clear_conditions();
        if let Some(hinted) = &self.hinted {
            self.conditions.extend_from_slice(&hinted.conditions);
        }
        self.warn_of_deprecated();
    }
}
