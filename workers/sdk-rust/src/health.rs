//! `/livez` and `/readyz` for whoever runs the process.
//!
//! Two fixed answers need no HTTP library: the request line is read, a status is written, the connection closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Requests at once; a probe needs one.
const CONNECTIONS_MAX: usize = 16;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: u64 = 4096;

/// Answers until dropped. `ready` says whether the worker is connected.
pub(crate) async fn serve(
    address: SocketAddr,
    ready: impl Fn() -> bool + Send + Sync + 'static,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(%address, "health endpoint");
    accept(listener, ready).await
}

async fn accept(
    listener: TcpListener,
    ready: impl Fn() -> bool + Send + Sync + 'static,
) -> std::io::Result<()> {
    let (ready, slots) = (Arc::new(ready), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((stream, _)) => {
                let ready = Arc::clone(&ready);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(REQUEST_TIMEOUT, answer(stream, &*ready)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: wait rather than spin.
                tracing::warn!(%error, "the health endpoint cannot accept");
                tokio::time::sleep(REQUEST_TIMEOUT).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, ready: &(impl Fn() -> bool + Send + Sync)) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut request = tokio::io::AsyncReadExt::take(&mut stream, REQUEST_BYTES_MAX);
    request.read_line(&mut line).await?;
    // The headers are of no interest, but closing on unread bytes would reset the connection under the answer.
    let mut header = String::new();
    while request.read_line(&mut header).await? > 2 {
        header.clear();
    }
    let (status, body) = match line.split_whitespace().nth(1) {
        Some("/livez") => ("200 OK", "ok\n"),
        Some("/readyz") if ready() => ("200 OK", "ok\n"),
        Some("/readyz") => ("503 Service Unavailable", "not connected to a broker\n"),
        _ => ("404 Not Found", "not found\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_worker_is_live_from_the_start_and_ready_while_it_is_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connected = Arc::new(AtomicBool::new(false));
        let probe = Arc::clone(&connected);
        tokio::spawn(accept(listener, move || probe.load(Ordering::SeqCst)));
        assert_eq!(get(address, "/livez").await, "HTTP/1.1 200 OK");
        assert_eq!(get(address, "/readyz").await, "HTTP/1.1 503 Service Unavailable");
        connected.store(true, Ordering::SeqCst);
        assert_eq!(get(address, "/readyz").await, "HTTP/1.1 200 OK");
        assert_eq!(get(address, "/other").await, "HTTP/1.1 404 Not Found");
    }
}
