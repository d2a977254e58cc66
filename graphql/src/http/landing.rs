//! A word of welcome for whoever opens the address in a browser.

use axum::response::Html;

pub async fn landing() -> Html<&'static str> {
    Html(include_str!("landing.html"))
}
