//! Reads the query of a URL strictly: unknown and repeated fields are errors.

use std::ops::RangeInclusive;
use std::str::FromStr;

use http::Uri;
use toolgate_model::TurnError;

/// The fields of a query. Their values are ids and numbers, which need no escapes.
pub(super) struct Query<'u>(Vec<(&'u str, &'u str)>);

impl<'u> Query<'u> {
    /// Reads a query that may have these fields.
    pub(super) fn read(uri: &'u Uri, known: &[&str]) -> Result<Self, TurnError> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for field in uri.query().unwrap_or_default().split('&').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            if !known.contains(&name) {
                let known = known.join("`, `");
                return Err(TurnError::invalid(format!("unknown query field `{name}`; use `{known}`")));
            }
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(TurnError::invalid(format!("the query field `{name}` is given twice")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    pub(super) fn text(&self, name: &str) -> Option<&'u str> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, value)| *value)
    }

    pub(super) fn number<N: FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &'static str,
        range: RangeInclusive<N>,
    ) -> Result<Option<N>, TurnError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let wrong = || {
            let message = format!("{name}: use a number from {} to {}", range.start(), range.end());
            TurnError::invalid_param(name, message)
        };
        number.ok_or_else(wrong).map(Some)
    }
}
