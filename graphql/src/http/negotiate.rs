//! Which of the two media types an answer takes.

use axum::http::{HeaderMap, header};

/// The media types of GraphQL over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Media {
    /// `application/json`: from before the specification; an executed or refused query is 200.
    Legacy,
    /// `application/graphql-response+json`: the status tells whether it was executed.
    Response,
}

impl Media {
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Legacy => "application/json; charset=utf-8",
            Self::Response => "application/graphql-response+json; charset=utf-8",
        }
    }
}

/// What `Accept` likes best of the two; None: neither. On a tie, and where it does not care, the old type,
/// which every client reads.
pub fn accepted(headers: &HeaderMap) -> Option<Media> {
    let ranges: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|range| !range.is_empty())
        .collect();
    if ranges.is_empty() {
        return Some(Media::Legacy);
    }
    let quality = |exact: &str| {
        // The most specific range that covers the type decides.
        ranges
            .iter()
            .filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let specificity = match parts.next()?.to_ascii_lowercase().as_str() {
                    media if media == exact => 2,
                    "application/*" => 1,
                    "*/*" => 0,
                    _ => return None,
                };
                let quality = parts
                    .find_map(|parameter| parameter.strip_prefix("q="))
                    .and_then(|quality| quality.parse::<f32>().ok())
                    .unwrap_or(1.0);
                Some((specificity, quality))
            })
            .max_by_key(|(specificity, _)| *specificity)
            .map_or(0.0, |(_, quality)| quality)
    };
    let legacy = quality("application/json");
    let response = quality("application/graphql-response+json");
    match (legacy > 0.0, response > 0.0) {
        (false, false) => None,
        (true, false) => Some(Media::Legacy),
        (false, true) => Some(Media::Response),
        // A client that names the new type understands it; one that names none gets the old.
        (true, true) => {
            let named = ranges.iter().any(|range| range.starts_with("application/graphql-response+json"));
            Some(if response > legacy || (named && response >= legacy) {
                Media::Response
            } else {
                Media::Legacy
            })
        }
    }
}

/// Whether a POST says JSON, in UTF-8 or without a word on the encoding.
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let mut parts = content_type.split(';').map(|part| part.trim().to_ascii_lowercase());
    parts.next().is_some_and(|media| media == "application/json")
        && parts.all(|parameter| match parameter.strip_prefix("charset=") {
            Some(charset) => charset.trim_matches('"') == "utf-8",
            None => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> Option<Media> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        accepted(&headers)
    }

    #[test]
    fn a_client_gets_the_type_it_likes_best_and_the_old_one_when_it_does_not_care() {
        assert_eq!(accepted(&HeaderMap::new()), Some(Media::Legacy));
        assert_eq!(accept("*/*"), Some(Media::Legacy));
        assert_eq!(accept("application/*"), Some(Media::Legacy));
        assert_eq!(accept("application/json"), Some(Media::Legacy));
        assert_eq!(accept("application/graphql-response+json"), Some(Media::Response));
        assert_eq!(accept("application/graphql-response+json, application/json"), Some(Media::Response));
        assert_eq!(accept("application/graphql-response+json;q=0.5, application/json"), Some(Media::Legacy));
        assert_eq!(
            accept("application/graphql-response+json; charset=utf-8, application/json; charset=utf-8"),
            Some(Media::Response)
        );
        assert_eq!(accept("text/html"), None);
        assert_eq!(accept("application/json;q=0"), None);
    }
}
