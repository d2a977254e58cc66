//! GraphQL over HTTP, and what stands beside it.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_graphql::Metrics;
use serde_json::{Value, json};
use support::World;
use support::http::{Reply, send};

const JSON: (&str, &str) = ("content-type", "application/json");
const NEW: (&str, &str) = ("accept", "application/graphql-response+json");
const OLD: (&str, &str) = ("accept", "application/json");

async fn post(world: &World, headers: &[(&str, &str)], body: &str) -> Reply {
    send(world.address, "POST", "/graphql", headers, body.as_bytes()).await
}

#[tokio::test]
async fn requests_are_told_apart_by_status_as_the_specification_wants() {
    let world = World::new().await;
    let good = r#"{"query": "{ __typename }"}"#;
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u16);
    let cases: &[Case<'_>] = &[
        ("a query", &[JSON, NEW], good, 200),
        ("a query, no accept", &[JSON], good, 200),
        ("utf-8 named", &[("content-type", "application/json; charset=UTF-8")], good, 200),
        ("another charset", &[("content-type", "application/json; charset=latin1")], good, 415),
        ("no content type", &[], good, 415),
        ("a form", &[("content-type", "application/x-www-form-urlencoded")], "query={__typename}", 415),
        ("an unacceptable accept", &[JSON, ("accept", "text/html")], good, 406),
        ("no JSON", &[JSON, OLD], "{", 400),
        ("an array", &[JSON], r#"[{"query": "{ __typename }"}]"#, 400),
        ("no query", &[JSON], "{}", 400),
        ("a query of the wrong type", &[JSON], r#"{"query": {}}"#, 400),
        ("variables of the wrong type", &[JSON], r#"{"query": "{ __typename }", "variables": "x"}"#, 400),
        ("an array of variables", &[JSON], r#"{"query": "{ __typename }", "variables": []}"#, 400),
        (
            "an operation name of the wrong type",
            &[JSON],
            r#"{"query": "{ __typename }", "operationName": 1}"#,
            400,
        ),
        ("extensions of the wrong type", &[JSON], r#"{"query": "{ __typename }", "extensions": 1}"#, 400),
        (
            "nulls",
            &[JSON],
            r#"{"query": "{ __typename }", "variables": null, "operationName": null, "extensions": null}"#,
            200,
        ),
        ("a syntax error, new type", &[JSON, NEW], r#"{"query": "{"}"#, 400),
        ("a syntax error, old type", &[JSON, OLD], r#"{"query": "{"}"#, 200),
        ("an unknown field, new type", &[JSON, NEW], r#"{"query": "{ nothing }"}"#, 400),
        ("an unknown field, old type", &[JSON, OLD], r#"{"query": "{ nothing }"}"#, 200),
        ("a field that fails, new type", &[JSON, NEW], r#"{"query": "{ resource { id } }"}"#, 200),
    ];
    for (what, headers, body, status) in cases {
        let reply = post(&world, headers, body).await;
        assert_eq!(reply.status, *status, "{what}: {}", reply.text());
    }
}

#[tokio::test]
async fn an_answer_has_the_type_the_client_asked_for_in_utf_8() {
    let world = World::new().await;
    let body = r#"{"query": "{ __typename }"}"#;
    let reply = post(&world, &[JSON, NEW], body).await;
    assert_eq!(reply.header("content-type"), Some("application/graphql-response+json; charset=utf-8"));
    let reply = post(&world, &[JSON, ("accept", "*/*")], body).await;
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
}

#[tokio::test]
async fn a_request_that_was_not_executed_has_no_data_and_one_that_failed_has() {
    let world = World::new().await;
    let refused: Value =
        serde_json::from_slice(&post(&world, &[JSON], r#"{"query": "{ nothing }"}"#).await.body).unwrap();
    assert!(refused.get("data").is_none() && refused["errors"].is_array(), "{refused}");
    let failed = world.ask("{ resources(after: \"!\") { position } }", json!({})).await;
    assert_eq!(failed.get("data"), Some(&Value::Null), "{failed}");
}

#[tokio::test]
async fn get_answers_queries_and_refuses_mutations() {
    let world = World::new().await;
    let get = async |query: &str| send(world.address, "GET", &format!("/graphql?{query}"), &[], b"").await;
    let reply = get("query=%7B__typename%7D").await;
    assert_eq!((reply.status, reply.text()), (200, r#"{"data":{"__typename":"Query"}}"#));
    let reply =
        get("query=query(%24f%3AInt)%7Bresources(first%3A%24f)%7Bposition%7D%7D&variables=%7B%22f%22%3A1%7D")
            .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = get("query=mutation%7Bdelete(kind%3A%22a%22%2Cname%3A%22b%22)%7Bid%7D%7D").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    assert_eq!(get("variables=%7B%7D").await.status, 400);
    assert_eq!(get("query=%7B__typename%7D&variables=nonsense").await.status, 400);
    let reply = send(world.address, "DELETE", "/graphql", &[], b"").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST")));
}

#[tokio::test]
async fn fields_come_back_in_the_order_they_were_asked_for() {
    let mut world = World::new().await;
    world.story.create("vpc", "a", None);
    world.sync().await;
    let reply = post(
        &world,
        &[JSON],
        r#"{"query": "{ resource(kind: \"vpc\", name: \"a\") { name kind zeta: phase alpha: name } }"}"#,
    )
    .await;
    let data = r#"{"data":{"resource":{"name":"a","kind":"vpc","zeta":"Reconciling","alpha":"a"}},"#;
    assert!(reply.text().starts_with(data), "{}", reply.text());
}

#[tokio::test]
async fn a_body_longer_than_an_apply_may_be_is_refused_and_one_as_long_is_not() {
    let world = World::new().await;
    let body = |spaces: usize| format!(r#"{{"query": "{{ __typename }}"{}}}"#, " ".repeat(spaces));
    assert_eq!(post(&world, &[JSON], &body(32 << 20)).await.status, 200);
    assert_eq!(post(&world, &[JSON], &body(33 << 20)).await.status, 413);
}

#[tokio::test]
async fn nesting_and_size_of_queries_are_bounded_and_introspection_fits() {
    let world = World::new().await;
    let deep = format!(
        "{{ resource(kind: \"a\", name: \"b\") {} }}",
        "{ owner ".repeat(30) + "{ id }" + &" }".repeat(30)
    );
    let wide = "{ resources(first: 1000) { nodes { children(first: 1000) { nodes { id } } } } }";
    for query in [deep.as_str(), wide] {
        let answer = world.ask(query, json!({})).await;
        assert!(answer.get("data").is_none() && answer["errors"].is_array(), "{answer}");
    }
    let everything =
        "{ resources(first: 1000) { nodes { id kind name spec status phase why conditions { type } } } }";
    world.data(everything, json!({})).await;
    let schema = world.data(INTROSPECTION, json!({})).await;
    assert_eq!(schema["__schema"]["queryType"]["name"], "Query");
}

#[tokio::test]
async fn liveness_needs_no_database_and_readiness_says_that_it_is_gone() {
    let world = World::new().await;
    let get = async |path: &str| send(world.address, "GET", path, &[], b"").await;
    assert_eq!((get("/livez").await.status, get("/readyz").await.status), (200, 200));
    world.freeze.cancel();
    world.pool.close().await;
    let ready = get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().starts_with("database: "), "{}", ready.text());
    assert_eq!(get("/livez").await.status, 200);
    assert!(get("/").await.text().contains("/graphql"));
}

#[tokio::test]
async fn metrics_are_on_the_same_listener_and_count_from_zero() {
    let world = World::with(|state| state.metrics = Some(Metrics::install().unwrap())).await;
    let metrics = send(world.address, "GET", "/metrics", &[], b"").await;
    assert!(
        metrics.text().lines().any(|line| line == "converge_tasks_dispatched_total 0"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn requests_beyond_the_bound_are_turned_away_and_told_to_come_back() {
    let world = World::with(|state| state.limits.http_requests_max = 0).await;
    let reply = post(&world, &[JSON], r#"{"query": "{ __typename }"}"#).await;
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("UNAVAILABLE"), "{}", reply.text());
}

/// What tools send.
const INTROSPECTION: &str = "
query IntrospectionQuery {
  __schema {
    description queryType { name kind } mutationType { name kind } subscriptionType { name kind }
    types { ...FullType }
    directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description specifiedByURL
  fields(includeDeprecated: true) {
    name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason
  }
  inputFields(includeDeprecated: true) { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type {
  kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
  ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
}";
