//! Reaching a broker.

use crate::tls::{TlsFiles, TlsMaterial};
use converge_protocol::v1::broker_client::BrokerClient;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A broker that is silent on HTTP/2 for this long is asked whether it is there, and given as long to answer.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Largest message from a broker, in bytes: a task with the largest spec that can be applied.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("{}", chain(.0))]
    Transport(#[from] tonic::transport::Error),
    #[error("{0}")]
    Files(#[from] std::io::Error),
}

/// A transport error says little by itself; its causes say what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Dials `broker`; answers the client, and the certificates it was made with.
pub(crate) async fn dial(
    broker: &str,
    tls: Option<&TlsFiles>,
) -> Result<(BrokerClient<Channel>, Option<TlsMaterial>), DialError> {
    let uri = match (broker.contains("://"), tls) {
        (true, _) => broker.to_owned(),
        (false, None) => format!("http://{broker}"),
        (false, Some(_)) => format!("https://{broker}"),
    };
    let endpoint = Endpoint::from_shared(uri)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true);
    let material = match tls {
        Some(files) => Some(files.read().await?),
        None => None,
    };
    let endpoint = match &material {
        Some(material) => endpoint.tls_config(material.config())?,
        None => endpoint,
    };
    let channel = endpoint.connect().await?;
    Ok((BrokerClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX), material))
}
