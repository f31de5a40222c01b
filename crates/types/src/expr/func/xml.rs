//! EXTRACTVALUE and UPDATEXML.

use crate::collation::Collation;
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{chars, string};
use crate::expr::program::{CallInfo, Prepared};
use crate::xml::Document;
use crate::xml::evaluate::{Evaluation, Found};
use crate::xml::xpath::{Xpath, XpathProblem};

type Args<'x, 'a> = &'x mut [Datum<'a>];

impl From<XpathProblem> for EvalError {
    fn from(problem: XpathProblem) -> Self {
        Self::Xpath(match problem {
            XpathProblem::TooDeep => return Self::TooDeep("an XPath of so many operators"),
            XpathProblem::Syntax(at) => format!("XPATH syntax error: '{at}'"),
            XpathProblem::Variable(at) => format!("Unknown XPATH variable at: '{at}'"),
            XpathProblem::TwoNodesets(at) => {
                format!("XPATH error: comparison of two nodesets is not supported: '{at}'")
            }
        })
    }
}

pub(crate) fn extract_value<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    on_document(args, info, ctx, |evaluation, xpath| {
        let found = evaluation.run(&xpath.0)?;
        Ok(evaluation.string_of(found))
    })
}

/// The document with the node that the path leads to replaced; as it is unless that is exactly one.
pub(crate) fn update_xml<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    on_document(args, info, ctx, |evaluation, xpath| {
        Ok(match evaluation.run(&xpath.0)? {
            Found::Nodes(nodes) => match nodes[..] {
                [node] => string(evaluation.document.with(node, chars(&args[2]))),
                _ => string(chars(&args[0])),
            },
            Found::Value(_) => Datum::Null,
        })
    })
}

/// Does something with a document and an XPath, the first two arguments; NULL with a warning if the first is none.
fn on_document<'a>(
    args: &[Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
    work: impl FnOnce(&Evaluation<'_>, &Xpath) -> EvalResult<Datum<'a>>,
) -> EvalResult<Datum<'a>> {
    let parsed;
    let xpath = match &info.prepared {
        Prepared::Xpath(xpath) => xpath,
        _ => {
            parsed = Xpath::parse(chars(&args[1]))?;
            &parsed
        }
    };
    match Document::parse(chars(&args[0])) {
        Ok(document) => {
            let collation = info.ty.collation().unwrap_or(Collation::DEFAULT);
            work(&Evaluation { document: &document, collation, ctx }, xpath)
        }
        Err(problem) => {
            ctx.note(&EvalError::IncorrectConstant { kind: "XML", value: problem.to_string() });
            Ok(Datum::Null)
        }
    }
}
