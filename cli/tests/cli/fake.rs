//! A GraphQL server that answers as a test tells it to, and remembers what it was asked.
//!
//! It knows the transport (HTTP, `graphql-transport-ws`) and nothing else, so a test states a server's
//! behaviour in the very words of the contract.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{any, post};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// Answers one operation, by its name and variables, with `data` or with `errors`.
type Answers = dyn Fn(&str, &Value) -> Result<Value, Value> + Send + Sync;
/// What a subscription's connection does, by the operation's name and variables.
type Streams = dyn Fn(&str, &Value) -> Vec<Step> + Send + Sync;

/// One step of a subscription's connection.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends the value of the subscription's field.
    Item(&'static str, Value),
    /// Breaks the connection off.
    Break,
    /// Ends the subscription with an error.
    Error(&'static str, &'static str),
}

/// A running fake.
pub struct Fake {
    pub url: String,
    inner: Arc<Inner>,
}

struct Inner {
    answers: Box<Answers>,
    streams: Box<Streams>,
    asked: Mutex<Vec<(String, String)>>,
    subscribed: Mutex<Vec<Value>>,
}

/// How a command ended and what it wrote.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// An error with a code, as the API gives it.
pub fn refusal(code: &str, message: &str) -> Value {
    json!([{"message": message, "extensions": {"code": code}}])
}

impl Fake {
    /// A server that answers questions and has no news.
    pub async fn answering(
        answers: impl Fn(&str, &Value) -> Result<Value, Value> + Send + Sync + 'static,
    ) -> Self {
        Self::start(answers, |_, _| Vec::new()).await
    }

    /// A server that answers questions and streams news.
    pub async fn start(
        answers: impl Fn(&str, &Value) -> Result<Value, Value> + Send + Sync + 'static,
        streams: impl Fn(&str, &Value) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            answers: Box::new(answers),
            streams: Box::new(streams),
            asked: Mutex::default(),
            subscribed: Mutex::default(),
        });
        let router = Router::new()
            .route("/graphql", post(answer))
            .route("/graphql/ws", any(upgrade))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&inner));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, inner }
    }

    /// Operations asked so far, with the raw text of each request.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.inner.asked.lock().unwrap().clone()
    }

    /// The variables of every subscription so far.
    pub fn subscribed(&self) -> Vec<Value> {
        self.inner.subscribed.lock().unwrap().clone()
    }

    /// Runs a command against this server, to its end.
    pub async fn run(&self, args: &[&str]) -> Ended {
        self.run_with_input(args, "").await
    }

    /// Runs a command with something on its stdin.
    pub async fn run_with_input(&self, args: &[&str], input: &str) -> Ended {
        let mut child = self.spawn(args);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a command that may not end by itself; it is killed with the value.
    pub fn spawn(&self, args: &[&str]) -> Child {
        command(&self.url, args).spawn().unwrap()
    }
}

/// The program, with nothing of this environment that could change what it says.
pub fn command(server: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_converge"));
    command
        .args(args)
        .env_clear()
        .env("CONVERGE_SERVER", server)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn answer(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let request: Value = serde_json::from_str(&text).unwrap();
    let operation = request["operationName"].as_str().unwrap().to_owned();
    inner.asked.lock().unwrap().push((operation.clone(), text));
    let answer = match (inner.answers)(&operation, &request["variables"]) {
        Ok(data) => json!({"data": data}),
        Err(errors) => json!({"data": null, "errors": errors}),
    };
    Response::builder()
        .header("content-type", "application/graphql-response+json")
        .body(answer.to_string().into())
        .unwrap()
}

async fn upgrade(State(inner): State<Arc<Inner>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.protocols(["graphql-transport-ws"]).on_upgrade(|socket| stream(inner, socket))
}

async fn stream(inner: Arc<Inner>, mut socket: WebSocket) {
    let say = |value: Value| Message::text(value.to_string());
    assert_eq!(receive(&mut socket).await.unwrap()["type"], "connection_init");
    socket.send(say(json!({"type": "connection_ack"}))).await.unwrap();
    let Some(request) = receive(&mut socket).await else { return };
    assert_eq!(request["type"], "subscribe");
    let variables = &request["payload"]["variables"];
    inner.subscribed.lock().unwrap().push(variables.clone());
    let operation = request["payload"]["operationName"].as_str().unwrap();
    for step in (inner.streams)(operation, variables) {
        let message = match step {
            Step::Item(field, value) => {
                json!({"type": "next", "id": request["id"], "payload": {"data": {field: value}}})
            }
            Step::Break => return,
            Step::Error(code, message) => {
                json!({"type": "error", "id": request["id"], "payload": refusal(code, message)})
            }
        };
        if socket.send(say(message)).await.is_err() {
            return;
        }
    }
    // No more news, but the line stays open until the client hangs up.
    while receive(&mut socket).await.is_some() {}
}

async fn receive(socket: &mut WebSocket) -> Option<Value> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Text(text) => return serde_json::from_str(&text).ok(),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}
