//! Exponential backoff with full jitter.
