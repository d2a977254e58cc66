//! HTTP/1.1 by hand: a client that sends exactly what a test says, malformed or not.

use std::fmt::Write;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    write!(head, "content-length: {}\r\n\r\n", body.len()).unwrap();
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let request = [head.as_bytes(), body].concat();
    // A server that refuses a long body closes before it has read it all; the answer still counts.
    let writer = tokio::spawn(async move {
        let _ = write.write_all(&request).await;
        write
    });
    let mut reply = Vec::new();
    let _ = read.read_to_end(&mut reply).await;
    drop(writer.await);
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n").expect("no head in the reply");
    let head = String::from_utf8(reply[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, body: reply[end + 4..].to_vec() }
}
