//! From the raw text of a request to something executable, losing nothing on the way.
//!
//! The usual path (serde into the GraphQL library's values) rounds numbers, keeps the last of two equal
//! keys and accepts `\u0000`. Documents must not be changed silently, so the raw text of `variables` is
//! checked before it is turned into values, and violations are told in terms of the documents.

use crate::error::ApiError;
use crate::mutation::subject;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationType, Selection};
use async_graphql::{Request, Variables};
use async_graphql_value::Value as Literal;
use converge_domain::json::faithful;
use converge_engine::gateway_api::Violation;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A request as its transport carried it; the parts are still text.
#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default, rename = "operationName")]
    pub operation_name: Option<String>,
    #[serde(default, borrow)]
    pub variables: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub extensions: Option<&'a RawValue>,
}

/// Why a request cannot be executed at all.
#[derive(Debug)]
pub enum Refusal {
    /// Not a GraphQL request.
    Malformed(String),
    /// A GraphQL request whose variables cannot be kept as they are.
    Unfaithful(ApiError),
}

impl<'a> Envelope<'a> {
    /// Reads the body of a POST or the payload of a subscribe message.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence.
    pub fn parse(text: &'a str) -> Result<Self, Refusal> {
        // serde would read an array as a struct, field by field.
        if !text.trim_start().starts_with('{') {
            return Err(Refusal::Malformed("a request must be a JSON object".to_owned()));
        }
        serde_json::from_str(text)
            .map_err(|error| Refusal::Malformed(format!("not a GraphQL request: {error}")))
    }

    /// The request, with checked variables.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn into_request(self) -> Result<Request, Refusal> {
        let query = self
            .query
            .filter(|query| !query.is_empty())
            .ok_or_else(|| Refusal::Malformed("a request needs a `query`".to_owned()))?;
        let extensions = object(self.extensions, "extensions")?;
        let variables = object(self.variables, "variables")?;
        let mut request = Request::new(&query);
        if let Some(variables) = variables {
            match faithful::parse(variables) {
                Ok(value) => request = request.variables(Variables::from_json(value)),
                Err(found) => {
                    let operation = self.operation_name.as_deref();
                    let violations = translate(&query, operation, variables, &found);
                    return Err(Refusal::Unfaithful(ApiError::validation(violations)));
                }
            }
        }
        if let Some(extensions) = extensions {
            let extensions = serde_json::from_str(extensions)
                .map_err(|error| Refusal::Malformed(format!("`extensions`: {error}")))?;
            request.extensions = extensions;
        }
        if let Some(name) = self.operation_name {
            request = request.operation_name(name);
        }
        Ok(request)
    }
}

fn object<'a>(raw: Option<&'a RawValue>, what: &str) -> Result<Option<&'a str>, Refusal> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(text)),
        Some(_) => Err(Refusal::Malformed(format!("`{what}` must be an object"))),
    }
}

/// The kind of the operation that would run; None when the query is not valid enough to tell.
pub fn operation_type(request: &mut Request) -> Option<OperationType> {
    let name = request.operation_name.clone();
    let document = request.parsed_query().ok()?;
    operation(document, name.as_deref()).map(|operation| operation.ty)
}

fn operation<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Option<&'a async_graphql::parser::types::OperationDefinition> {
    let mut operations = document.operations.iter();
    match name {
        Some(name) => operations.find(|(found, _)| found.is_some_and(|found| found == name)),
        None => operations.next(),
    }
    .map(|(_, operation)| &operation.node)
}

/// Where in `variables` the documents of `apply` are, by the operation's own words.
enum Source {
    /// `documents: $all`
    All(String),
    /// `documents: [$a, $b]`
    Each(Vec<Option<String>>),
}

fn translate(
    query: &str,
    operation_name: Option<&str>,
    variables: &str,
    found: &[faithful::Unfaithful],
) -> Vec<Violation> {
    let sources = sources(query, operation_name);
    // Only for naming subjects: what could not be read faithfully may still be readable.
    let readable: serde_json::Value = serde_json::from_str(variables).unwrap_or_default();
    found
        .iter()
        .map(|unfaithful| {
            let (document, at, pointer) = sources
                .iter()
                .find_map(|source| locate(source, &unfaithful.pointer))
                .unwrap_or_else(|| (0, String::new(), format!("/variables{}", unfaithful.pointer)));
            let subject = readable.pointer(&at).filter(|_| !at.is_empty()).map(subject).unwrap_or_default();
            Violation { document, subject, pointer, message: unfaithful.message.clone() }
        })
        .collect()
}

/// The document's index, its pointer in the variables, and the rest of the pointer inside it.
fn locate(source: &Source, pointer: &str) -> Option<(usize, String, String)> {
    let inside = |prefix: &str| match pointer.strip_prefix(prefix) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest.to_owned()),
        _ => None,
    };
    match source {
        Source::All(name) => {
            let rest = inside(&format!("/{name}"))?;
            let mut tokens = rest.strip_prefix('/')?.splitn(2, '/');
            let index = tokens.next()?;
            let tail = tokens.next().map(|tail| format!("/{tail}")).unwrap_or_default();
            Some((index.parse().ok()?, format!("/{name}/{index}"), tail))
        }
        Source::Each(names) => names.iter().enumerate().find_map(|(index, name)| {
            let at = format!("/{}", name.as_deref()?);
            let rest = inside(&at)?;
            Some((index, at, rest))
        }),
    }
}

fn sources(query: &str, operation_name: Option<&str>) -> Vec<Source> {
    let Ok(document) = parse_query(query) else { return Vec::new() };
    let Some(operation) = operation(&document, operation_name) else { return Vec::new() };
    let name = |value: &Literal| match value {
        Literal::Variable(name) => Some(name.to_string()),
        _ => None,
    };
    operation
        .selection_set
        .node
        .items
        .iter()
        .filter_map(|item| match &item.node {
            Selection::Field(field) => field.node.get_argument("documents"),
            _ => None,
        })
        .filter_map(|argument| match &argument.node {
            Literal::List(items) => Some(Source::Each(items.iter().map(name).collect())),
            other => name(other).map(Source::All),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(query: &str, variables: &str) -> Vec<(usize, String, String)> {
        let query = serde_json::to_string(query).unwrap();
        let text = format!(r#"{{"query": {query}, "variables": {variables}}}"#);
        match Envelope::parse(&text).unwrap().into_request() {
            Err(Refusal::Unfaithful(error)) => {
                error.violations.into_iter().map(|v| (v.document, v.subject, v.pointer)).collect()
            }
            other => panic!("expected violations, got {other:?}"),
        }
    }

    #[test]
    fn a_number_that_would_lose_digits_is_named_by_document_and_pointer() {
        let found = violations(
            "mutation($docs: [JSON!]!) { apply(documents: $docs) { position } }",
            r#"{"docs": [{"kind": "a", "name": "x"}, {"kind": "b", "name": "y", "spec": {"n": 0.10000000000000000001}}]}"#,
        );
        assert_eq!(found, [(1, "b/y".to_owned(), "/spec/n".to_owned())]);
    }

    #[test]
    fn documents_given_one_variable_each_are_told_apart() {
        let found = violations(
            "mutation($a: JSON!, $b: JSON!) { apply(documents: [$a, $b]) { position } }",
            r#"{"a": {"kind": "a"}, "b": {"kind": "b", "spec": {"k": 1, "k": 2}}}"#,
        );
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].2.as_str()), (1, "/spec/k"));
    }

    #[test]
    fn sixty_four_bit_integers_pass_with_all_their_digits() {
        let text = r#"{"query": "query($n: JSON) { __typename }", "variables": {"n": [18446744073709551615, -9223372036854775808]}}"#;
        let request = Envelope::parse(text).unwrap().into_request().unwrap();
        let value = serde_json::to_string(&request.variables).unwrap();
        assert_eq!(value, r#"{"n":[18446744073709551615,-9223372036854775808]}"#);
    }
}
