//! Durations as people write them (`5m`, `1h30m`, `500ms`) and as tables show them (`3d4h`).

use std::time::Duration;

/// Reads `90s`, `1h30m`, `500ms` or a bare number of seconds.
///
/// # Errors
/// For anything else, with a message fit for the command line.
pub fn parse(text: &str) -> Result<Duration, String> {
    let refuse = || format!("`{text}` is not a duration; write 500ms, 30s, 5m or 1h30m");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refuse());
    }
    if let Ok(secs) = rest.parse::<u32>() {
        return Ok(Duration::from_secs(secs.into()));
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refuse)?;
        let count: u32 = rest[..digits].parse().map_err(|_| refuse())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            "d" => Duration::from_secs(86_400),
            _ => return Err(refuse()),
        };
        total = unit.checked_mul(count).and_then(|part| total.checked_add(part)).ok_or_else(refuse)?;
        rest = &rest[letters..];
    }
    Ok(total)
}

/// A coarse age, two units at most: `42s`, `5m10s`, `3h20m`, `12d`.
pub fn coarse(age: Duration) -> String {
    let secs = age.as_secs();
    let pair = |big: u64, big_unit: &str, small: u64, small_unit: &str| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
    };
    match secs {
        0..120 => format!("{secs}s"),
        120..36_000 if secs < 3_600 => pair(secs / 60, "m", secs % 60, "s"),
        120..36_000 => pair(secs / 3_600, "h", secs % 3_600 / 60, "m"),
        36_000..172_800 => format!("{}h", secs / 3_600),
        172_800..864_000 => pair(secs / 86_400, "d", secs % 86_400 / 3_600, "h"),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_sum_of_numbers_with_units() {
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("90"), Ok(Duration::from_secs(90)));
        for nonsense in ["", "m", "5 m", "-5s", "5y", "1h30", "99999999999s"] {
            assert!(parse(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn an_age_shows_two_units_at_most() {
        let shown = |secs| coarse(Duration::from_secs(secs));
        assert_eq!(shown(119), "119s");
        assert_eq!(shown(310), "5m10s");
        assert_eq!(shown(3_600), "1h");
        assert_eq!(shown(12_000), "3h20m");
        assert_eq!(shown(50_000), "13h");
        assert_eq!(shown(200_000), "2d7h");
        assert_eq!(shown(5_000_000), "57d");
    }
}
