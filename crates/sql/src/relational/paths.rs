//! Values at paths into documents as columns of scans.
//!
//! `doc->>'$.a'` is a function of a column to an executor, for which the whole document is read. A scan that is asked for the
//! value at the path may have it without the document. So before a plan is run, what looks into a scanned column of documents by
//! a constant path of names becomes a column that the scan makes ([`PathColumn`]), and conditions of the scan on such a value
//! become conditions that the scan tests ([`PathTest`]).
//!
//! A scan makes nothing that could fail or warn: of `CAST(doc->>'$.a' AS SIGNED)` it gives the integers, and the documents of
//! what is none, to which the conversion is applied when it is evaluated:
//!
//! ```text
//!  CASE WHEN rest IS NULL THEN value ELSE CAST(JSON_UNQUOTE(rest) AS SIGNED) END
//! ```
//!
//! Where statistics prove that there is no rest, the value is all.
//!
//! The plan that EXPLAIN shows stays as it is.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use avocet_types::SqlType;
use avocet_types::expr::{Expr, ExprKind};
use avocet_types::json::shred::{Form, Target};

use super::path_shapes::{Access, Conversion, Tested, is_null};
use super::{Node, Operator, PathColumn, PathCondition, Plan, Scan, bounds, prune};
use crate::plan::{ColumnId, ColumnInfo, ColumnTable};

impl Plan {
    /// The plan with columns for paths; `None` if it has no use for any.
    pub fn with_path_columns(&self) -> Option<Self> {
        let mut has_documents = false;
        self.root.for_each_node(&mut |node| {
            if let Operator::Scan(scan) = &node.operator {
                has_documents |=
                    scan.table.columns.iter().any(|(_, id)| self.columns[*id].ty == SqlType::Json);
            }
        });
        if !has_documents {
            return None;
        }
        let (mut root, mut columns) = (self.root.clone(), self.columns.clone());
        let mut finder = Finder { columns: &mut columns, documents: HashMap::new(), has_tests: false };
        finder.visit(&mut root, false);
        if !finder.has_tests && finder.documents.values().all(|documents| documents.made.is_empty()) {
            return None;
        }
        finder.widen(&mut root, false);
        let outputs = root.outputs.clone();
        prune::prune(&mut root, &outputs);
        let bounds = bounds::bounds(&mut root, &columns);
        Some(Self { root, columns, bounds })
    }
}

/// Whether the columns of a node's inputs have no place in what it is but that of its outputs.
fn is_opaque(operator: &Operator) -> bool {
    matches!(
        operator,
        Operator::Distinct { .. } | Operator::SetOperation(_) | Operator::Recursive(_) | Operator::Values(_)
    )
}

/// A scanned column of documents.
struct Documents {
    /// Its position in the table.
    position: usize,
    made: Vec<Made>,
    /// By paths as which targets all values are known to be.
    known: Known,
}

type Known = Rc<dyn Fn(&[Box<str>], Target) -> bool>;

/// A column of a path into it.
struct Made {
    names: Arc<[Box<str>]>,
    form: Form,
    ty: SqlType,
    id: ColumnId,
}

struct Finder<'c> {
    columns: &'c mut ColumnTable,
    documents: HashMap<ColumnId, Documents>,
    has_tests: bool,
}

impl Finder<'_> {
    /// Puts columns of paths in the place of expressions. Returns the columns of documents that the node passes on, if it is to.
    fn visit(&mut self, node: &mut Node, passes: bool) -> Vec<ColumnId> {
        let is_opaque = is_opaque(&node.operator);
        let seen = match &mut node.operator {
            Operator::Scan(scan) => {
                let of_documents =
                    scan.table.columns.iter().filter(|(_, id)| self.columns[*id].ty == SqlType::Json);
                let seen: Vec<_> = of_documents.map(|(position, id)| (*position, *id)).collect();
                let this = Rc::new(Scan { predicates: Vec::new(), ..scan.clone() });
                for &(position, id) in &seen {
                    let this = this.clone();
                    let known: Known = Rc::new(move |names, target| {
                        bounds::greatest_at(&this, position, names, target).is_some()
                    });
                    // A join on alternatives has several scans of the same columns.
                    let documents = self.documents.entry(id);
                    documents.or_insert_with(|| Documents { position, made: Vec::new(), known });
                }
                let seen: Vec<_> = seen.into_iter().map(|(_, id)| id).collect();
                for condition in std::mem::take(&mut scan.predicates) {
                    match Tested::of(&condition, &seen) {
                        Some(tested) => self.test(tested, &mut scan.paths.tests, &mut scan.predicates),
                        None => scan.predicates.push(condition),
                    }
                }
                seen
            }
            // The query of an Apply is planned by itself.
            Operator::Apply(apply) => self.visit(&mut apply.input, true),
            Operator::Once { query: first, input, .. } | Operator::With { body: first, input, .. } => {
                self.visit(first, false);
                self.visit(input, true)
            }
            _ => {
                let inputs = node.inputs_mut().into_iter();
                inputs.flat_map(|input| self.visit(input, !is_opaque)).collect()
            }
        };
        if !seen.is_empty() {
            node.for_each_expr_mut(&mut |expr| self.replace(expr, &seen));
        }
        let outputs = if passes { &node.outputs[..] } else { &[] };
        seen.into_iter().filter(|id| outputs.contains(id)).collect()
    }

    /// Has the scan test a condition, and leaves what the test says nothing of.
    fn test(&mut self, tested: Tested, tests: &mut Vec<PathCondition>, rest: &mut Vec<Expr>) {
        self.has_tests = true;
        let Tested { access, tests: all, residual } = tested;
        let column = self.documents[&access.documents].position;
        tests.extend(all.into_iter().map(|test| PathCondition { column, names: access.names.clone(), test }));
        let known = self.documents[&access.documents].known.clone();
        if let Some(residual) = residual.filter(|residual| !known(&access.names, residual.target)) {
            let left = self.column(&access, Form::Rest(residual.target), SqlType::Json);
            let condition = (residual.condition)(left.clone());
            rest.push(Expr::truth(ExprKind::Or(vec![is_null(left), condition]), true));
        }
    }

    fn replace(&mut self, expr: &mut Expr, seen: &[ColumnId]) {
        match self.replaced(expr, seen) {
            Some(replaced) => *expr = replaced,
            None => expr.for_each_child_mut(&mut |child| self.replace(child, seen)),
        }
    }

    fn replaced(&mut self, expr: &Expr, seen: &[ColumnId]) -> Option<Expr> {
        if let Some((access, form)) = Access::of(expr, seen) {
            return Some(self.column(&access, form, expr.ty));
        }
        let Conversion { access, target, of } = Conversion::of(expr, seen)?;
        let value = self.column(&access, Form::Value(target), expr.ty);
        if (self.documents[&access.documents].known)(&access.names, target) {
            return Some(value);
        }
        let left = self.column(&access, Form::Rest(target), SqlType::Json);
        let branches = vec![(is_null(left.clone()), value)];
        let otherwise = Some(Box::new(of(left)));
        Some(Expr::new(ExprKind::Case { branches, otherwise }, expr.ty, true))
    }

    /// The column of a path in a form.
    fn column(&mut self, access: &Access, form: Form, ty: SqlType) -> Expr {
        let made = &mut self.documents.get_mut(&access.documents).expect("a column of a scan").made;
        let known = made.iter().find(|m| m.names == access.names && m.form == form && m.ty == ty);
        let id = known.map(|known| known.id).unwrap_or_else(|| {
            let info = ColumnInfo { name: "".into(), ty, nullable: true, origin: None, label: None };
            let id = self.columns.add(info);
            made.push(Made { names: access.names.clone(), form, ty, id });
            id
        });
        Expr::column(id.index(), ty, true)
    }

    /// Adds the columns to the scans that make them, and to the outputs of what passes their documents on.
    fn widen(&self, node: &mut Node, passes: bool) {
        let is_opaque = is_opaque(&node.operator);
        match &mut node.operator {
            Operator::Scan(scan) => {
                for (position, id) in &scan.table.columns {
                    let made = self.documents.get(id).map_or(&[][..], |documents| &documents.made);
                    scan.paths.columns.extend(made.iter().map(|made| PathColumn {
                        id: made.id,
                        column: *position,
                        names: made.names.clone(),
                        form: made.form,
                    }));
                }
            }
            Operator::Apply(apply) => self.widen(&mut apply.input, true),
            Operator::Once { query: first, input, .. } | Operator::With { body: first, input, .. } => {
                self.widen(first, false);
                self.widen(input, true);
            }
            _ => node.inputs_mut().into_iter().for_each(|input| self.widen(input, !is_opaque)),
        }
        if passes && !is_opaque {
            let of_documents = node.outputs.iter().filter_map(|id| self.documents.get(id));
            let made: Vec<_> = of_documents.flat_map(|d| d.made.iter().map(|made| made.id)).collect();
            node.outputs.extend(made);
        }
    }
}
