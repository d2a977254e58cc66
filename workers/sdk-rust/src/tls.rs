//! TLS towards the broker, from files that may be rotated while the worker runs.

use std::path::PathBuf;
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Where the certificates are. They are read at every dial, so a rotated file is in use from the next connection on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The authority that the broker's certificate must come from (`BROKER_CA_FILE`).
    pub ca: PathBuf,
    /// Certificate and key that the worker shows (`TLS_CERT_FILE`, `TLS_KEY_FILE`).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// How often to look for changed files, and dial again when they have (`TLS_RELOAD_INTERVAL`); None: never.
    pub reload: Option<Duration>,
}

impl TlsFiles {
    /// The files' contents now.
    pub(crate) async fn read(&self) -> Result<TlsMaterial, std::io::Error> {
        let read = async |path: &PathBuf| {
            let name = path.display().to_string();
            tokio::fs::read(path)
                .await
                .map_err(|error| std::io::Error::new(error.kind(), format!("{name}: {error}")))
        };
        let identity = match &self.identity {
            Some((cert, key)) => Some((read(cert).await?, read(key).await?)),
            None => None,
        };
        Ok(TlsMaterial { ca: read(&self.ca).await?, identity })
    }

    /// Ends when the files differ from `used`; never, when nobody asked to look.
    pub(crate) async fn rotated(&self, used: &TlsMaterial) {
        let Some(interval) = self.reload else { return std::future::pending().await };
        loop {
            tokio::time::sleep(interval).await;
            match self.read().await {
                Ok(now) if now != *used => return,
                Ok(_) => {}
                // Half way through a rotation, perhaps; the connection that stands goes on.
                Err(error) => tracing::warn!(%error, "TLS files cannot be read"),
            }
        }
    }
}

/// PEM texts as read.
#[derive(PartialEq, Eq)]
pub(crate) struct TlsMaterial {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsMaterial {
    pub(crate) fn config(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.ca));
        match &self.identity {
            Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
            None => config,
        }
    }
}
