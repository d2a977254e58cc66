//! The GraphQL API as a client sees it.

use serde_json::{Value, json};

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Api {
    http: reqwest::Client,
    server: String,
}

/// What an apply answered.
#[derive(Debug)]
pub struct Applied {
    pub position: u64,
    /// `(kind/name, verb)` of each document.
    pub verbs: Vec<(String, String)>,
    pub warnings: Vec<String>,
}

impl Api {
    /// A client of `http://HOST:PORT`.
    pub fn new(server: &str) -> Self {
        // The client is built with TLS and panics without a provider, though it never speaks TLS here. A second
        // installation is refused, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { http: reqwest::Client::new(), server: server.to_owned() }
    }

    /// Whether it says it is ready; not answering is a no.
    pub async fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.server)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The `data` of an operation.
    pub async fn ask(&self, query: &str, variables: Value) -> Value {
        let mut answer = self.try_ask(query, variables).await.expect("the API answers");
        assert!(answer["errors"].is_null(), "{query}: {}", answer["errors"]);
        answer["data"].take()
    }

    /// The whole answer, or why there was none.
    pub async fn try_ask(&self, query: &str, variables: Value) -> reqwest::Result<Value> {
        let body = json!({ "query": query, "variables": variables });
        self.http.post(format!("{}/graphql", self.server)).json(&body).send().await?.json().await
    }

    pub async fn apply(&self, documents: &[Value]) -> Applied {
        let query = "mutation ($documents: [JSON!]!) {
            apply(documents: $documents) { position results { kind name verb warnings } } }";
        let answer = &self.ask(query, json!({ "documents": documents })).await["apply"];
        let results = answer["results"].as_array().expect("results");
        Applied {
            position: number(&answer["position"]),
            verbs: results
                .iter()
                .map(|result| {
                    (format!("{}/{}", text(&result["kind"]), text(&result["name"])), text(&result["verb"]))
                })
                .collect(),
            warnings: results
                .iter()
                .flat_map(|result| result["warnings"].as_array().cloned().unwrap_or_default())
                .map(|warning| text(&warning))
                .collect(),
        }
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        let query =
            "mutation ($kind: String!, $name: String!) { delete(kind: $kind, name: $name) { position } }";
        self.ask(query, json!({ "kind": kind, "name": name })).await;
    }

    /// `(phase, why)` of a resource that exists.
    pub async fn state(&self, kind: &str, name: &str) -> Option<(String, String)> {
        let query = "query ($kind: String!, $name: String!) {
            resource(kind: $kind, name: $name) { phase why } }";
        let answer = self.ask(query, json!({ "kind": kind, "name": name })).await;
        let resource = &answer["resource"];
        (!resource.is_null())
            .then(|| (text(&resource["phase"]), resource["why"].as_str().unwrap_or("").to_owned()))
    }

    /// The counter of tasks handed to workers, summed over kinds.
    pub async fn tasks_dispatched(&self) -> u64 {
        let answer = self.http.get(format!("{}/metrics", self.server)).send().await.expect("metrics");
        let metrics = answer.text().await.expect("text");
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("converge_tasks_dispatched_total"))
            .map(|line| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect(line));
        counts.sum()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// Positions travel as text or as numbers.
fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("not a number: {value}"))
}
