//! `landing-zone`: the demo's worker process. Settings come from the environment (see `converge_sdk::Settings`), the
//! demo's own knobs from the environment or from flags.

use landing_zone::{Knobs, providers};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if std::env::args().skip(1).any(|flag| flag == "--help" || flag == "-h") {
        println!("{}", landing_zone::Knobs::HELP);
        return Ok(());
    }
    converge_sdk::init_logging()?;
    let knobs = Knobs::read(|name| std::env::var(name).ok(), std::env::args().skip(1))?;
    tracing::info!(?knobs, "the landing zone opens");
    let shutdown = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    converge_sdk::serve_until(providers(&knobs)?, shutdown).await?;
    Ok(())
}
