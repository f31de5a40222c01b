//! DataFusion's logical nodes, made without its builder.
//!
//! The builder resolves each column by a walk over the whole plan and by scans of schemas, which of `n` expressions takes `n²`
//! steps. Here names are unique (lower.rs), so one table of a schema's names resolves all of them. Wide nodes get their
//! schemas from it, too, and no functional dependencies, which would be lists as long as the schema for each key.

use std::collections::HashMap;
use std::sync::Arc;

use avocet_types::error::SqlError;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, DFSchemaRef, DataFusionError, ExprSchema, Result, SchemaError, TableReference,
};
use datafusion::logical_expr::utils::{compare_sort_expr, group_window_expr_by_sort_keys};
use datafusion::logical_expr::{
    self as df, Aggregate, ExprSchemable, Filter, LogicalPlan, Projection, Sort, SortExpr, Window,
};

use crate::names::df_result;
use crate::udf::ConvertedUdf;
use crate::wide::{WideNode, is_wide};

/// Of nodes with more columns than this functional dependencies are not told.
const MOST_DEPENDENT: usize = 64;

pub(super) fn project(
    input: LogicalPlan,
    exprs: impl IntoIterator<Item = df::Expr>,
) -> std::result::Result<LogicalPlan, SqlError> {
    df_result(projection(input, exprs.into_iter().collect()))
}

pub(super) fn filter(input: LogicalPlan, condition: df::Expr) -> std::result::Result<LogicalPlan, SqlError> {
    let filter = Columns::new(input.schema()).resolved(condition);
    df_result(
        filter.and_then(|condition| Filter::try_new(condition, Arc::new(input))).map(LogicalPlan::Filter),
    )
}

pub(super) fn aggregate(
    input: LogicalPlan,
    groups: Vec<df::Expr>,
    calls: Vec<df::Expr>,
) -> std::result::Result<LogicalPlan, SqlError> {
    df_result(aggregation(input, groups, calls))
}

pub(super) fn sort(input: LogicalPlan, keys: Vec<SortExpr>) -> std::result::Result<LogicalPlan, SqlError> {
    let columns = Columns::new(input.schema());
    let keys = keys.into_iter().map(|key| Ok(SortExpr { expr: columns.resolved(key.expr)?, ..key }));
    let expr = df_result(keys.collect::<Result<Vec<_>>>())?;
    Ok(LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: None }))
}

/// Window functions, those in the same order together; what is sorted by more is below.
pub(super) fn windows(
    mut input: LogicalPlan,
    calls: Vec<df::Expr>,
) -> std::result::Result<LogicalPlan, SqlError> {
    let columns = Columns::new(input.schema());
    let calls = df_result(calls.into_iter().map(|call| columns.resolved(call)).collect::<Result<Vec<_>>>())?;
    let mut groups = df_result(group_window_expr_by_sort_keys(calls))?;
    groups.sort_by(|(a, _), (b, _)| {
        let parts = a.iter().zip(b).map(|((a, _), (b, _))| compare_sort_expr(a, b, input.schema()));
        parts.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(b.len().cmp(&a.len()))
    });
    for (_, calls) in groups {
        input = LogicalPlan::Window(df_result(Window::try_new(calls, Arc::new(input)))?);
    }
    Ok(input)
}

fn projection(input: LogicalPlan, exprs: Vec<df::Expr>) -> Result<LogicalPlan> {
    let columns = Columns::new(input.schema());
    let mut exprs = exprs.into_iter().map(|expr| columns.resolved(expr)).collect::<Result<Vec<_>>>()?;
    if exprs.len() > 1 {
        exprs = exprs.into_iter().map(without_order).collect();
    }
    if is_wide(&exprs) {
        return WideNode::project(input, exprs);
    }
    if exprs.len().max(input.schema().fields().len()) <= MOST_DEPENDENT {
        return Projection::try_new(exprs, Arc::new(input)).map(LogicalPlan::Projection);
    }
    let schema = columns.schema_of(exprs.iter())?;
    Projection::try_new_with_schema(exprs, Arc::new(input), schema).map(LogicalPlan::Projection)
}

/// A cast as a function of which DataFusion knows no order: it takes a converted column for sorted as the column itself is, and
/// where both stand in a row it leaves a sort by both out, and then refuses the plan that it has made.
fn without_order(expr: df::Expr) -> df::Expr {
    match expr {
        df::Expr::Cast(cast) => {
            let to = cast.field.data_type().clone();
            ConvertedUdf::create(to).call(vec![*cast.expr])
        }
        df::Expr::Alias(alias) if matches!(*alias.expr, df::Expr::Cast(_)) => {
            df::Expr::Alias(df::expr::Alias { expr: Box::new(without_order(*alias.expr)), ..alias })
        }
        other => other,
    }
}

fn aggregation(input: LogicalPlan, groups: Vec<df::Expr>, calls: Vec<df::Expr>) -> Result<LogicalPlan> {
    let columns = Columns::new(input.schema());
    let resolved = |exprs: Vec<df::Expr>| {
        exprs.into_iter().map(|expr| columns.resolved(expr)).collect::<Result<Vec<_>>>()
    };
    let (groups, calls) = (resolved(groups)?, resolved(calls)?);
    if is_wide(&groups) || is_wide(&calls) {
        return WideNode::aggregate(input, groups, calls);
    }
    let has_sets = groups.iter().any(|group| matches!(group, df::Expr::GroupingSet(_)));
    if has_sets || (groups.len() + calls.len()).max(input.schema().fields().len()) <= MOST_DEPENDENT {
        return Aggregate::try_new(Arc::new(input), groups, calls).map(LogicalPlan::Aggregate);
    }
    let schema = columns.schema_of(groups.iter().chain(&calls))?;
    Aggregate::try_new_with_schema(Arc::new(input), groups, calls, schema).map(LogicalPlan::Aggregate)
}

/// A schema's columns by their names.
#[derive(Debug)]
pub(super) struct Columns<'s> {
    schema: &'s DFSchema,
    qualified: HashMap<(&'s TableReference, &'s str), usize>,
    /// Those without a qualifier; of others the first.
    by_name: HashMap<&'s str, usize>,
}

impl<'s> Columns<'s> {
    pub fn new(schema: &'s DFSchema) -> Self {
        let (mut qualified, mut by_name) = (HashMap::new(), HashMap::new());
        for (at, (qualifier, field)) in schema.iter().enumerate() {
            let name = field.name().as_str();
            match qualifier {
                Some(qualifier) => {
                    qualified.entry((qualifier, name)).or_insert(at);
                    by_name.entry(name).or_insert(at);
                }
                None => {
                    by_name.insert(name, at);
                }
            }
        }
        Self { schema, qualified, by_name }
    }

    fn position(&self, column: &Column) -> Option<usize> {
        match &column.relation {
            Some(relation) => self.qualified.get(&(relation, &*column.name)).copied(),
            None => self.by_name.get(&*column.name).copied(),
        }
    }

    /// The expression, its columns with their qualifiers.
    fn resolved(&self, expr: df::Expr) -> Result<df::Expr> {
        let resolved = expr.transform_up(|part| {
            let df::Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            if column.relation.is_some() {
                return Ok(Transformed::no(part));
            }
            let qualifier = self.position(column).and_then(|at| self.schema.qualified_field(at).0);
            Ok(match qualifier {
                Some(qualifier) => {
                    let column = Column::new(Some(qualifier.clone()), column.name.clone());
                    Transformed::yes(df::Expr::Column(column))
                }
                None => Transformed::no(part),
            })
        });
        resolved.map(|resolved| resolved.data)
    }

    /// The schema of the columns that an expression reads, and where they stand in this one.
    pub fn part_of(&self, expr: &df::Expr) -> Result<(DFSchema, HashMap<String, usize>)> {
        let mut positions = HashMap::new();
        let mut fields = Vec::new();
        for column in expr.column_refs() {
            let at = self.position(column).ok_or_else(|| missing(column))?;
            let (qualifier, field) = self.schema.qualified_field(at);
            if positions.insert(field.name().clone(), at).is_none() {
                fields.push((qualifier.cloned(), field.clone()));
            }
        }
        Ok((DFSchema::new_with_metadata(fields, self.schema.metadata().clone())?, positions))
    }

    pub fn schema_of<'e>(&self, exprs: impl Iterator<Item = &'e df::Expr>) -> Result<DFSchemaRef> {
        let fields = exprs.map(|expr| expr.to_field(self)).collect::<Result<Vec<_>>>()?;
        DFSchema::new_with_metadata(fields, self.schema.metadata().clone()).map(Arc::new)
    }
}

impl ExprSchema for Columns<'_> {
    fn field_from_column(&self, column: &Column) -> Result<&FieldRef> {
        Ok(self.schema.field(self.position(column).ok_or_else(|| missing(column))?))
    }
}

fn missing(column: &Column) -> DataFusionError {
    let field = Box::new(column.clone());
    let error = SchemaError::FieldNotFound { field, valid_fields: Vec::new() };
    DataFusionError::SchemaError(Box::new(error), Box::new(None))
}
