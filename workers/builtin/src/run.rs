//! The worker process around the built-in providers.

use crate::{StdShell, Stdio};
use converge_sdk::{Provider, WorkerError, serve_until};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Serves the built-in providers with the environment's settings until `shutdown`, then drains.
///
/// # Errors
/// A malformed setting.
pub async fn run_builtin(shutdown: CancellationToken) -> Result<(), WorkerError> {
    serve_until(providers(|name| std::env::var(name).ok()), shutdown).await
}

/// `stdio` for every kind that names it, and for the kinds in `STDIO_KINDS` and `STDIO_COMPOSER_KINDS`; and `stdshell`. The
/// two lists are told apart by people only: a program that composes speaks the same protocol.
pub fn providers(lookup: impl Fn(&str) -> Option<String>) -> Vec<Arc<dyn Provider>> {
    let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(Stdio::by_name()), Arc::new(StdShell)];
    for list in ["STDIO_KINDS", "STDIO_COMPOSER_KINDS"] {
        let names = lookup(list).unwrap_or_default();
        for kind in names.split(',').map(str::trim).filter(|kind| !kind.is_empty()) {
            providers.push(Arc::new(Stdio::for_kind(kind)));
        }
    }
    providers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_kinds_are_served_by_name_next_to_the_provider_itself() {
        let lookup = |name: &str| match name {
            "STDIO_KINDS" => Some("bucket, ,queue".to_owned()),
            "STDIO_COMPOSER_KINDS" => Some("fleet".to_owned()),
            _ => None,
        };
        let providers = providers(lookup);
        let kinds: Vec<_> = providers.iter().map(|p| (p.kind(), p.provider())).collect();
        let by_kind = |kind| (kind, None);
        assert_eq!(
            kinds,
            [
                ("stdio", Some("stdio")),
                by_kind("stdshell"),
                by_kind("bucket"),
                by_kind("queue"),
                by_kind("fleet")
            ]
        );
    }
}
