//! Apply.

use crate::error::ApiError;
use crate::limits::APPLY_DOCUMENTS_MAX;
use crate::state::ApiState;
use crate::types::{Json, Position};
use async_graphql::parser::types::Field;
use async_graphql::{Context, ID, Object, SimpleObject};
use async_graphql_value::Value as Literal;
use converge_domain::CommandId;
use converge_engine::gateway_api::{Applied, RequestContext, Verb, Violation};

#[derive(Default)]
pub struct ApplyMutation;

/// What an apply did.
#[derive(SimpleObject)]
pub struct ApplyPayload {
    /// Of its last event; of the decision when nothing changed.
    position: Position,
    /// One per document, in the order given.
    results: Vec<ApplyResult>,
}

/// What an apply did to one document.
#[derive(SimpleObject)]
pub struct ApplyResult {
    /// `kind`, `resource`, `providerconfig` or `reactorbinding`.
    #[graphql(name = "type")]
    document_type: String,
    /// For a resource its kind.
    kind: String,
    name: String,
    id: ID,
    /// `created`, `configured` or `unchanged`.
    verb: &'static str,
    revision: Option<Position>,
    generation: Option<Position>,
    warnings: Vec<String>,
}

#[Object]
impl ApplyMutation {
    /// Declares documents, all or nothing. They must come as variables: the text of a query does not keep
    /// the digits of numbers, the variables' text is checked before anything is lost.
    async fn apply(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "At most 1,000, together at most 32 MiB.")] documents: Vec<Json>,
        #[graphql(desc = "The type of documents that name none.")] default_type: Option<String>,
        #[graphql(desc = "A uuid: the same id is executed once.")] command_id: Option<ID>,
    ) -> Result<ApplyPayload, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        refuse_literals(&ctx.item.node)?;
        if documents.len() > APPLY_DOCUMENTS_MAX {
            let count = documents.len();
            return Err(ApiError::bad_request(format!(
                "{count} documents in one apply; at most {APPLY_DOCUMENTS_MAX} are accepted, split them"
            )));
        }
        let mut context = ctx.data_opt::<RequestContext>().cloned().unwrap_or_default();
        if let Some(id) = command_id {
            let id = id.parse().map_err(|_| ApiError::bad_request("`commandId` is not a uuid"))?;
            context.command_id = Some(CommandId(id));
        }

        let mut parsed = Vec::with_capacity(documents.len());
        let mut violations = Vec::new();
        for (index, Json(value)) in documents.into_iter().enumerate() {
            let subject = subject(&value);
            match converge_domain::document::parse(value, default_type.as_deref()) {
                Ok(document) => parsed.push(document),
                Err(found) => violations.extend(found.into_iter().map(|violation| Violation {
                    document: index,
                    subject: subject.clone(),
                    pointer: violation.pointer,
                    message: violation.message,
                })),
            }
        }
        if !violations.is_empty() {
            return Err(ApiError::validation(violations));
        }
        let answer = state.gateway.apply(parsed, context).await?;
        Ok(ApplyPayload {
            position: answer.position.into(),
            results: answer.applied.into_iter().map(Into::into).collect(),
        })
    }
}

/// `kind/name` of a document as far as it can be read.
pub fn subject(document: &serde_json::Value) -> String {
    let word = |key| document.get(key).and_then(serde_json::Value::as_str);
    match (word("kind"), word("name")) {
        (Some(kind), Some(name)) => format!("{kind}/{name}"),
        (Some(word), None) | (None, Some(word)) => word.to_owned(),
        (None, None) => String::new(),
    }
}

/// A literal object in the query's text has lost the digits of its numbers and all but the last of any
/// duplicate keys by the time it gets here, so it cannot be checked; variables were checked as raw text.
fn refuse_literals(field: &Field) -> Result<(), ApiError> {
    let literal = |value: &Literal| !matches!(value, Literal::Variable(_));
    let refused = field.get_argument("documents").is_some_and(|argument| match &argument.node {
        Literal::List(items) => items.iter().any(literal),
        other => literal(other),
    });
    if refused {
        return Err(ApiError::bad_request(
            "give `documents` as a variable; a document written into the query may lose digits",
        ));
    }
    Ok(())
}

impl From<Applied> for ApplyResult {
    fn from(applied: Applied) -> Self {
        Self {
            document_type: applied.document_type,
            kind: applied.kind,
            name: applied.name,
            id: ID::from(applied.id.to_string()),
            verb: match applied.verb {
                Verb::Created => "created",
                Verb::Configured => "configured",
                Verb::Unchanged => "unchanged",
            },
            revision: applied.revision.map(|revision| Position(revision.0)),
            generation: applied.generation.map(|generation| Position(generation.0)),
            warnings: applied.warnings,
        }
    }
}
