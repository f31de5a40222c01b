//! An Apply on DataFusion: a node that plans its query again for each combination of outer values.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use avocet_sql::bind::unsupported;
use avocet_sql::relational::{Apply, ApplyKind, Node, Operator};
use avocet_types::error::SqlError;
use avocet_types::{Collation, SqlType};
use datafusion::logical_expr::{self as df, LogicalPlan, LogicalPlanBuilder};

use super::{Applied, ApplyNode};
use crate::expr::{Lowered, cast, equality_key_of, key_meeting_type, sort_key_of};
use crate::lower::Lowerer;
use crate::names::{df_result, name_of};
use crate::nodes;

impl Lowerer {
    pub(crate) fn apply(&mut self, apply: &Apply) -> Result<LogicalPlan, SqlError> {
        let plan = self.node(&apply.input)?;
        if let (ApplyKind::Rows { outer }, Operator::JsonTable { document, level, columns }) =
            (apply.kind, &apply.query.operator)
        {
            return self.expanded(plan, document, level, columns, &apply.query.outputs, outer);
        }
        let ordered = is_ordered(apply.kind);
        let mut exprs = Vec::with_capacity(apply.outer.len() + apply.needles.len());
        let mut outer = Vec::with_capacity(apply.outer.len());
        for id in &apply.outer {
            exprs.push(self.logical_value(&self.column_expr(*id))?);
            outer.push((*id, self.columns()[*id].ty));
        }
        let mut keys = Vec::with_capacity(apply.needles.len());
        for (needle, output) in apply.needles.iter().zip(&apply.query.outputs) {
            let key = key_type(&needle.ty, &self.columns()[*output].ty, ordered)?;
            let value = self.value(needle)?;
            exprs.push(key_of(value, &needle.ty, &key, ordered));
            keys.push(key);
        }
        let added = match apply.kind {
            ApplyKind::Rows { .. } => &apply.query.outputs[..],
            _ => std::slice::from_ref(&apply.id),
        };
        let field = |id: &_| Field::new(name_of(*id), self.columns()[*id].ty.arrow_type(), true);
        let added = added.iter().map(field).collect();
        let (id, kind, query) = (apply.id, apply.kind, Arc::new(apply.query.clone()));
        let varies = apply.query.is_volatile();
        let applied = Applied { id, kind, query, outer, keys, varies, lowerer: self.clone() };
        ApplyNode::plan(applied, plan, exprs, added)
    }

    /// A query whose outer columns are constants by now, as its answer needs it.
    pub(super) fn answer_plan(
        mut self,
        query: &Node,
        kind: ApplyKind,
        keys: &[DataType],
    ) -> Result<LogicalPlan, SqlError> {
        let plan = self.node(query)?;
        let most = match kind {
            ApplyKind::Exists { .. } => {
                return df_result(LogicalPlanBuilder::from(plan).limit(0, Some(1)).and_then(|b| b.build()));
            }
            ApplyKind::Scalar => Some(2),
            _ => None,
        };
        let mut columns = Vec::with_capacity(query.outputs.len());
        for (at, id) in query.outputs.iter().enumerate() {
            let value = self.column(*id);
            let ty = self.columns()[*id].ty;
            let column = match keys.get(at) {
                Some(key) => key_of(value, &ty, key, is_ordered(kind)),
                None => cast(value, &ty.arrow_type()),
            };
            columns.push(column.alias(format!("r{at}")));
        }
        let builder = LogicalPlanBuilder::from(nodes::project(plan, columns)?);
        df_result(builder.limit(0, most).and_then(|b| b.build()))
    }
}

fn is_ordered(kind: ApplyKind) -> bool {
    matches!(kind, ApplyKind::Quantified { .. })
}

/// The type of the keys by which a needle and a subquery's column compare.
fn key_type(needle: &SqlType, column: &SqlType, ordered: bool) -> Result<DataType, SqlError> {
    if *needle == SqlType::Json || *column == SqlType::Json {
        return Ok(DataType::BinaryView);
    }
    if let Some(collation) = needle.collation().or(column.collation()) {
        let bytes = if ordered { !collation.is_exact() } else { !collation.is_binary() };
        return Ok(if bytes { DataType::BinaryView } else { DataType::Utf8View });
    }
    let side = |ty: &SqlType| Lowered { expr: df::ident("x"), ty: ty.arrow_type() };
    Ok(match (needle.arrow_type(), column.arrow_type()) {
        (DataType::Null, DataType::Null) => DataType::Int64,
        (DataType::Null, ty) | (ty, DataType::Null) => ty,
        (a, b) if a == b => a,
        _ => key_meeting_type(&side(needle), &side(column))
            .ok_or_else(|| unsupported("a comparison of this kind with a subquery"))?,
    })
}

fn key_of(value: Lowered, ty: &SqlType, key: &DataType, ordered: bool) -> df::Expr {
    match ty.order() {
        Some(Collation::JSON) => sort_key_of(value.expr, Collation::JSON),
        Some(collation) => {
            let text = cast(value, &DataType::Utf8View);
            if ordered { sort_key_of(text, collation) } else { equality_key_of(text, ty) }
        }
        None => cast(value, key),
    }
}
