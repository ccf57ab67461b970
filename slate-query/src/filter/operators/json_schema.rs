//! `$jsonSchema`: the document satisfies a schema.

use std::sync::Arc;

use super::super::{Node, clause::Clause, node::Tree};
use crate::{Code, Result, schema::Schema};

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    if !clause.scope.admits_schemas {
        return Err(clause.refuse_with(Code::QUERY_FEATURE_NOT_ALLOWED, "$jsonSchema is not allowed in this context"));
    }
    let schema = clause.operand.as_document();
    let schema = schema.ok_or_else(|| clause.refuse_with(Code::TYPE_MISMATCH, "$jsonSchema must be an object"))?;
    Ok(Some(Node { tree: Tree::Schema(Arc::new(Schema::parse(schema)?)) }))
}
