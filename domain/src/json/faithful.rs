//! Reading JSON text without losing anything of it.
//!
//! Ordinary parsers round numbers and keep the last of two equal keys in silence; what is stored would then not
//! be what was written. This one refuses what cannot be kept, and says where. One pass over the text.

use super::DEPTH_MAX;
use super::pointer::escape;
use crate::violation::Violation;
use serde_json::{Map, Number, Value};

/// Most faults reported for one text; more are counted only.
const REPORTED_MAX: usize = 1000;

/// Something in the text that cannot be kept as written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}{message}", pointer, if pointer.is_empty() { "" } else { ": " })]
pub struct Unfaithful {
    /// RFC 6901, from the root of the text.
    pub pointer: String,
    pub message: String,
}

impl From<Unfaithful> for Violation {
    fn from(fault: Unfaithful) -> Self {
        Self::new(fault.pointer, fault.message)
    }
}

/// Reads one JSON value.
///
/// Refused: text that is not JSON or nested deeper than [`DEPTH_MAX`], duplicate keys, the character U+0000,
/// unpaired surrogates, and numbers that are neither 64-bit integers nor the decimal value of some double in its
/// shortest form (`1.10` is read as 1.1; `12345678901234567890123` and `1e400` are refused).
///
/// # Errors
/// Every fault in order of appearance; a fault of syntax or depth ends the search.
pub fn parse(text: &str) -> Result<Value, Vec<Unfaithful>> {
    let mut scanner = Scanner { text, at: 0, path: String::new(), faults: Vec::new(), unreported: 0 };
    let value = scanner.document();
    if scanner.unreported > 0 {
        let message = format!("and {} more faults", scanner.unreported);
        scanner.faults.push(Unfaithful { pointer: String::new(), message });
    }
    match value {
        Ok(value) if scanner.faults.is_empty() => Ok(value),
        _ => Err(scanner.faults),
    }
}

/// The text stopped making sense; the fault is already recorded.
struct Stop;

struct Scanner<'a> {
    text: &'a str,
    /// Byte offset of the next character; always a character boundary.
    at: usize,
    /// Rendered pointer to the value being read; grown and cut back as the scan goes in and out.
    path: String,
    faults: Vec<Unfaithful>,
    unreported: usize,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<Value, Stop> {
        let value = self.value(0)?;
        self.skip_space();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.syntax("nothing may follow the value")),
        }
    }

    /// `above`: containers around this value. Recursion is bounded by [`DEPTH_MAX`].
    fn value(&mut self, above: usize) -> Result<Value, Stop> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(above, Self::object),
            Some(b'[') => self.nested(above, Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.syntax("a value is expected")),
            None => Err(self.syntax("the text ends where a value is expected")),
        }
    }

    fn nested(
        &mut self,
        above: usize,
        read: fn(&mut Self, usize) -> Result<Value, Stop>,
    ) -> Result<Value, Stop> {
        if above == DEPTH_MAX {
            self.fault(format!("nested deeper than {DEPTH_MAX} levels"));
            return Err(Stop);
        }
        self.at += 1;
        read(self, above + 1)
    }

    fn object(&mut self, above: usize) -> Result<Value, Stop> {
        let mut fields = Map::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(fields));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.syntax("a key in double quotes is expected"));
            }
            let key = self.string()?;
            let outer = self.path.len();
            self.path.push('/');
            self.path.push_str(&escape(&key));
            if fields.contains_key(&key) {
                self.fault("the key appears twice in its object".to_owned());
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.syntax("`:` is expected after a key"));
            }
            let value = self.value(above)?;
            self.path.truncate(outer);
            fields.insert(key, value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(fields));
            }
            if !self.take(b',') {
                return Err(self.syntax("`,` or `}` is expected"));
            }
        }
    }

    fn array(&mut self, above: usize) -> Result<Value, Stop> {
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let outer = self.path.len();
            self.path.push('/');
            self.path.push_str(&items.len().to_string());
            items.push(self.value(above)?);
            self.path.truncate(outer);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.syntax("`,` or `]` is expected"));
            }
        }
    }

    /// Reads a string from its opening quote on.
    fn string(&mut self) -> Result<String, Stop> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let Some(run) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) else {
                return Err(self.syntax("the text ends inside a string"));
            };
            // The three stoppers are ASCII, so the run ends at a character boundary.
            string.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
            match rest[run] {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => {
                    self.at += 1;
                    if let Some(c) = self.escaped()? {
                        string.push(c);
                    }
                }
                _ => return Err(self.syntax("control characters must be escaped in strings")),
            }
        }
    }

    /// Reads what follows a backslash. None: a character that cannot be kept; recorded, reading goes on.
    fn escaped(&mut self) -> Result<Option<char>, Stop> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some_and(|b| b.is_ascii()));
        Ok(Some(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_unit_escape(),
            _ => return Err(self.syntax("unknown escape in a string")),
        }))
    }

    fn code_unit_escape(&mut self) -> Result<Option<char>, Stop> {
        let first = self.hex4()?;
        if first == 0 {
            self.fault("the character U+0000 cannot be stored".to_owned());
            return Ok(None);
        }
        if let Some(c) = char::from_u32(first) {
            return Ok(Some(c));
        }
        // A surrogate: only a high one directly followed by a low one denotes a character.
        if first < 0xdc00 && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                return Ok(char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
            }
            self.at = before;
        }
        self.fault(format!("`\\u{first:04x}` is half of a surrogate pair and denotes no character"));
        Ok(None)
    }

    fn hex4(&mut self) -> Result<u32, Stop> {
        let digits =
            self.text.as_bytes().get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(self.syntax("`\\u` needs four hexadecimal digits"));
        };
        let code =
            digits.iter().fold(0, |code, digit| code * 16 + char::from(*digit).to_digit(16).unwrap_or(0));
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, Stop> {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.syntax("a digit is expected")),
        }
        if self.take(b'.') {
            self.some_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.some_digits()?;
        }
        let text = &self.text[start..self.at];
        if let Some(number) = number(text) {
            return Ok(Value::Number(number));
        }
        let shown = if text.len() <= 40 { text } else { "this number" };
        self.fault(format!(
            "{shown} can be kept neither as a 64-bit integer nor as a double of the same decimal value"
        ));
        Ok(Value::Null)
    }

    fn some_digits(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip_digits();
                Ok(())
            }
            _ => Err(self.syntax("a digit is expected")),
        }
    }

    fn skip_digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Stop> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.syntax("a value is expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&mut self, message: String) {
        if self.faults.len() < REPORTED_MAX {
            self.faults.push(Unfaithful { pointer: self.path.clone(), message });
        } else {
            self.unreported += 1;
        }
    }

    /// Records a fault of syntax, with line and column (in characters) for the user's editor.
    fn syntax(&mut self, what: &str) -> Stop {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        self.fault(format!("not JSON at line {line} column {column}: {what}"));
        Stop
    }
}

/// The number a JSON literal denotes, if it can be kept exactly.
fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<u64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    // Rust reads the nearest double and writes its shortest form; the literal is kept when both denote one
    // decimal value.
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite())?;
    let same = decimal(text)? == decimal(&format!("{double:e}"))?;
    if same { Number::from_f64(double) } else { None }
}

/// A decimal value in one normal form: sign, digits without zeros at either end, power of ten. Zero is the
/// empty digits. None: an exponent that no double comes near.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent = exponent.parse::<i64>().ok()?;
    let trimmed = significant.trim_end_matches('0');
    let shift = i64::try_from(significant.len() - trimmed.len()).ok()?;
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(shift)?;
    Some((negative, trimmed.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap_err().into_iter().map(|fault| (fault.pointer, fault.message)).collect()
    }

    fn kept(text: &str) -> bool {
        parse(text).is_ok()
    }

    #[test]
    fn numbers_are_kept_or_refused_by_their_decimal_value() {
        for (text, value) in [
            ("1.10", json!(1.1)),
            ("0.1", json!(0.1)),
            ("-0.0", json!(-0.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1e300", json!(1e300)),
            ("1E+2", json!(100.0)),
            ("100000000000000000000", json!(1e20)),
            ("5e-324", json!(5e-324)),
            ("0e999999999999999999999", json!(0.0)),
            ("0.30000000000000004", json!(0.300_000_000_000_000_04)),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        for text in [
            "12345678901234567890123",
            "18446744073709551617",
            "1e400",
            "-1e400",
            "1e99999999999999999999",
            "1e-400",
            "0.1000000000000000055511151231257827",
            "9007199254740993.0",
        ] {
            assert!(faults(text)[0].1.contains("neither as a 64-bit integer"), "{text}");
        }
    }

    #[test]
    fn every_fault_is_found_with_its_pointer() {
        let found = faults(
            r#"{"a": 1e400, "b/c": {"x": 1, "x": 2}, "list": [0, "nul\u0000"], "\u0000k": "\ud800!"}"#,
        );
        let places: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(places, ["/a", "/b~1c/x", "/list/1", "", "/k"]);
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_its_line_and_column() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "\"a",
            "-",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\t\"",
            "[1] 2",
            "NaN",
            "\"\\",
            "\"\\é\"",
            "tru€",
        ] {
            assert!(faults(text)[0].1.starts_with("not JSON at line 1 column"), "{text:?}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
        }
        assert_eq!(faults("{\n  \"é\": ?")[0].1, "not JSON at line 2 column 8: a value is expected");
    }

    #[test]
    fn strings_are_read_as_written() {
        assert_eq!(
            parse(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 日本""#),
            Ok(json!("\"\\/\u{8}\u{c}\n\r\té😀 日本"))
        );
        assert!(!kept(r#""\udc00""#) && !kept(r#""\ud800\u0041""#) && !kept(r#""\ud800\ud800""#));
    }

    #[test]
    fn nesting_is_bounded_and_a_value_at_the_bound_survives_its_wrappings() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let deepest = parse(&nested(DEPTH_MAX)).unwrap();
        assert_eq!(super::super::depth(&deepest), DEPTH_MAX);
        assert!(!kept(&nested(DEPTH_MAX + 1)));
        assert!(!kept(&"[".repeat(1_000_000)));
        let wrapped = (0..20).fold(deepest, |inner, _| json!({ "in": inner }));
        assert!(serde_json::from_str::<Value>(&wrapped.to_string()).is_ok());
    }

    #[test]
    fn reading_large_texts_is_linear_and_reports_are_bounded() {
        let text = format!("[{}1]", r#"{"a":1,"a":2},"#.repeat(200_000));
        let found = faults(&text);
        assert_eq!(found.len(), REPORTED_MAX + 1);
        assert_eq!(found[REPORTED_MAX].1, "and 199000 more faults");
    }
}
