//! Metrics for Prometheus, on the API's own listener.

use super::App;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};

/// The process's metrics.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Makes the process collect metrics from here on. Once per process, before anything counts.
    ///
    /// # Errors
    /// When a recorder is installed already.
    pub fn install() -> Result<Self, BuildError> {
        let handle = PrometheusBuilder::new().install_recorder()?;
        // Present from the start, so that "none yet" reads as 0 and not as absent.
        metrics::counter!("converge_tasks_dispatched_total").increment(0);
        Ok(Self(handle))
    }

    /// The text of the exposition format.
    pub fn render(&self) -> String {
        // Without its own listener nobody else tells the recorder to fold its histograms.
        self.0.run_upkeep();
        self.0.render()
    }
}

pub async fn metrics(State(app): State<App>) -> Response {
    match &app.state.metrics {
        Some(metrics) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render())
                .into_response()
        }
        None => (StatusCode::NOT_FOUND, "this process collects no metrics\n").into_response(),
    }
}
