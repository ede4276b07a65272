//! Compares a JSON value with an expectation. They must be equal, except that in the expectation
//! - the string `"*"` matches any value but null, for generated ids and times;
//! - `"*name"` matches any value but null, the same for each occurrence of the name and different for other names;
//! - the key `"..."` in an object allows further fields;
//! - a field that is not named may be missing, null or false.

use std::collections::HashMap;

use serde_json::{Map, Value};

const WILDCARD: char = '*';
/// Allows further fields.
const OPEN: &str = "...";

/// Compares the values of one fixture.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    named: HashMap<String, Value>,
}

impl Matcher {
    /// The first difference from the expectation.
    pub(crate) fn difference(&mut self, expect: &Value, found: &Value) -> Option<String> {
        self.at("", expect, found)
    }

    fn at(&mut self, path: &str, expect: &Value, found: &Value) -> Option<String> {
        match (expect, found) {
            (Value::String(expect), found) if expect.starts_with(WILDCARD) => {
                self.wildcard(path, expect, found)
            }
            (Value::Object(expect), Value::Object(found)) => self.fields(path, expect, found),
            (Value::Array(expect), Value::Array(found)) if expect.len() == found.len() => {
                let mut pairs = expect.iter().zip(found).enumerate();
                pairs.find_map(|(index, (expect, found))| self.at(&format!("{path}[{index}]"), expect, found))
            }
            (Value::Number(expect), Value::Number(found)) if expect.as_f64() == found.as_f64() => None,
            _ if expect == found => None,
            _ => Some(format!("{path} is {found} and not {expect}")),
        }
    }

    fn wildcard(&mut self, path: &str, expect: &str, found: &Value) -> Option<String> {
        let name = expect.trim_start_matches(WILDCARD);
        if found.is_null() {
            return Some(format!("{path} is null and not some value"));
        }
        if name.is_empty() {
            return None;
        }
        if let Some(before) = self.named.get(name) {
            return (before != found).then(|| format!("{path} is {found} and not {before} as before"));
        }
        let taken = self.named.iter().find(|(_, value)| *value == found);
        let fault = taken.map(|(other, _)| format!("{path} is {found}, the same as `{other}`"));
        self.named.insert(name.to_owned(), found.clone());
        fault
    }

    fn fields(
        &mut self,
        path: &str,
        expect: &Map<String, Value>,
        found: &Map<String, Value>,
    ) -> Option<String> {
        for (name, expect) in expect.iter().filter(|(name, _)| *name != OPEN) {
            let path = format!("{path}.{name}");
            let Some(found) = found.get(name) else { return Some(format!("{path} is missing")) };
            if let Some(difference) = self.at(&path, expect, found) {
                return Some(difference);
            }
        }
        if expect.contains_key(OPEN) {
            return None;
        }
        let mut unnamed =
            found.iter().filter(|(name, value)| !expect.contains_key(*name) && !is_nothing(value));
        unnamed.next().map(|(name, value)| format!("{path}.{name} is {value}, unexpectedly"))
    }
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}
