//! Reads one table of the config file key by key. Checks types and reports unknown keys.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duration::parse_duration;
use super::nearest::suggestion;
use super::problem::{Located, Position, ReadContext};
use super::size::parse_size;

/// A table and its name in messages.
pub(crate) struct Section<'t> {
    name: String,
    position: Position,
    fields: Vec<Field<'t>>,
}

/// One `key = value` of a table.
pub(crate) struct Field<'t> {
    pub(crate) key: &'t str,
    /// The position of the key.
    pub(crate) position: Position,
    pub(crate) value: &'t DeValue<'t>,
    value_position: Position,
}

impl<'t> Section<'t> {
    /// The whole file.
    pub(crate) fn root(table: &'t Spanned<DeTable<'t>>, context: &ReadContext<'_>) -> Self {
        Self::of(String::new(), Position { line: 1, column: 1 }, table.get_ref(), context)
    }

    fn of(name: String, position: Position, table: &'t DeTable<'t>, context: &ReadContext<'_>) -> Self {
        let mut fields: Vec<Field<'t>> = table
            .iter()
            .map(|(key, value)| Field {
                key: key.get_ref(),
                position: context.position(&key.span()),
                value: value.get_ref(),
                value_position: context.position(&value.span()),
            })
            .collect();
        // The parser sorts by name; problems are reported in the order of the file.
        fields.sort_by_key(|field| field.position);
        Self { name, position, fields }
    }

    /// The name in messages: `[upstreams.openai]`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The position of the table.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The position of a key, if present.
    pub(crate) fn key_position(&self, key: &str) -> Option<Position> {
        self.field(key).map(|field| field.position)
    }

    /// Reports every other key.
    pub(crate) fn expect_keys(&self, known: &[&'static str], context: &mut ReadContext<'_>) {
        for field in &self.fields {
            if !known.contains(&field.key) {
                let scope = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
                let hint = suggestion(field.key, known.iter().copied(), "keys here");
                context.error(field.position, format!("unknown key `{}`{scope}{hint}", field.key));
            }
        }
    }

    /// Reports a missing key.
    pub(crate) fn missing(&self, line_to_add: &str, context: &mut ReadContext<'_>) {
        context.error(self.position, format!("{} lacks a required key: add `{line_to_add}`", self.name));
    }

    pub(crate) fn text(
        &self,
        key: &str,
        example: &str,
        context: &mut ReadContext<'_>,
    ) -> Option<Located<String>> {
        self.field(key)?.text(example, context)
    }

    pub(crate) fn flag(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<bool>> {
        let field = self.field(key)?;
        let Some(flag) = field.value.as_bool() else { return wrong_type(field, "true or false", context) };
        Some(field.placed(flag))
    }

    pub(crate) fn count(&self, key: &str, most: u32, context: &mut ReadContext<'_>) -> Option<Located<u32>> {
        let field = self.field(key)?;
        let wanted = format!("a whole number from 0 to {most}");
        let Some(digits) = field.value.as_integer() else { return wrong_type(field, &wanted, context) };
        let number =
            u32::from_str_radix(digits.as_str(), digits.radix()).ok().filter(|number| *number <= most);
        if number.is_none() {
            context.error(field.value_position, format!("`{key}` must be {wanted}, not {digits}"));
        }
        number.map(|number| field.placed(number))
    }

    /// A positive number.
    pub(crate) fn amount(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<f64>> {
        const WANTED: &str = "a number above 0";
        let field = self.field(key)?;
        let written = match &field.value {
            DeValue::Integer(digits) => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return wrong_type(field, WANTED, context),
        };
        let amount = written.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
        if amount.is_none() {
            context.error(field.value_position, format!("`{key}` must be {WANTED}, not {written}"));
        }
        amount.map(|amount| field.placed(amount))
    }

    pub(crate) fn duration(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<Duration>> {
        self.parsed(key, "30s", parse_duration, context)
    }

    /// A number of bytes, written with its unit.
    pub(crate) fn size(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<usize>> {
        self.parsed(key, "32MiB", parse_size, context)
    }

    /// A value that is written as a string. The parser's error says what to write.
    pub(crate) fn parsed<T>(
        &self,
        key: &str,
        example: &str,
        parse: fn(&str) -> Result<T, &'static str>,
        context: &mut ReadContext<'_>,
    ) -> Option<Located<T>> {
        let text = self.text(key, example, context)?;
        match parse(&text.value) {
            Ok(value) => Some(Located { value, position: text.position }),
            Err(why) => {
                context.error(text.position, format!("`{key}` is \"{}\": {why}", text.value));
                None
            }
        }
    }

    /// A list of strings; with [`ListForm::OneOrMany`] a single string is a list of one.
    pub(crate) fn texts(
        &self,
        key: &str,
        form: ListForm,
        context: &mut ReadContext<'_>,
    ) -> Option<Vec<Located<String>>> {
        let field = self.field(key)?;
        if let Some(items) = field.value.as_array() {
            return Some(strings(key, items, context));
        }
        match form {
            ListForm::Many => wrong_type(field, "a list of strings", context),
            ListForm::OneOrMany => match field.value.as_str() {
                Some(text) => Some(vec![field.placed(text.to_owned())]),
                None => wrong_type(field, "a string or a list of strings", context),
            },
        }
    }

    /// The table under a key, if present.
    pub(crate) fn table(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Section<'t>> {
        let field = self.field(key)?;
        let name = self.child_name(key);
        let Some(table) = field.value.as_table() else {
            return wrong_type(field, &format!("a table, written {name}"), context);
        };
        Some(Self::of(name, field.position, table, context))
    }

    /// All tables under a key, such as `[upstreams.*]`, with their names.
    pub(crate) fn tables(
        &self,
        key: &str,
        context: &mut ReadContext<'_>,
    ) -> Vec<(Located<String>, Section<'t>)> {
        let Some(parent) = self.table(key, context) else { return Vec::new() };
        let mut tables = Vec::new();
        for field in &parent.fields {
            if let Some(section) = parent.table(field.key, context) {
                tables.push((Located { value: field.key.to_owned(), position: field.position }, section));
            }
        }
        tables
    }

    /// All tables of `[[key]]`.
    pub(crate) fn table_list(&self, key: &str, context: &mut ReadContext<'_>) -> Vec<Section<'t>> {
        let Some(field) = self.field(key) else { return Vec::new() };
        let name = format!("[[{key}]]");
        let Some(items) = field.value.as_array() else {
            wrong_type::<()>(field, &format!("a list of tables, each written {name}"), context);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for item in items {
            let position = context.position(&item.span());
            let Some(table) = item.get_ref().as_table() else {
                let found = type_name(item.get_ref());
                context.error(position, format!("{name} must be a table, not {found}"));
                continue;
            };
            sections.push(Self::of(name.clone(), position, table, context));
        }
        sections
    }

    /// All fields, in the order of the file.
    pub(crate) fn fields(&self) -> &[Field<'t>] {
        &self.fields
    }

    fn field(&self, key: &str) -> Option<&Field<'t>> {
        self.fields.iter().find(|field| field.key == key)
    }

    fn child_name(&self, key: &str) -> String {
        let bare = key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
        let key = if bare { key.to_owned() } else { format!("\"{key}\"") };
        match self.name.strip_suffix(']') {
            Some(parent) => format!("{parent}.{key}]"),
            None => format!("[{key}]"),
        }
    }
}

impl Field<'_> {
    /// The value as a string; reports other types.
    pub(crate) fn text(&self, example: &str, context: &mut ReadContext<'_>) -> Option<Located<String>> {
        let Some(text) = self.value.as_str() else {
            return wrong_type(self, &format!("a string, such as \"{example}\""), context);
        };
        Some(self.placed(text.to_owned()))
    }

    fn placed<T>(&self, value: T) -> Located<T> {
        Located { value, position: self.value_position }
    }
}

/// The accepted forms of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// `["a", "b"]`.
    Many,
    /// `"a"` or `["a", "b"]`.
    OneOrMany,
}

fn strings(key: &str, items: &[Spanned<DeValue<'_>>], context: &mut ReadContext<'_>) -> Vec<Located<String>> {
    let mut texts = Vec::new();
    for item in items {
        let position = context.position(&item.span());
        let Some(text) = item.get_ref().as_str() else {
            let found = type_name(item.get_ref());
            context.error(position, format!("`{key}` must contain only strings, not {found}"));
            continue;
        };
        texts.push(Located { value: text.to_owned(), position });
    }
    texts
}

// The message never contains the value, which may be a secret under the wrong key.
fn wrong_type<T>(field: &Field<'_>, wanted: &str, context: &mut ReadContext<'_>) -> Option<T> {
    let found = type_name(field.value);
    context.error(field.value_position, format!("`{}` must be {wanted}, not {found}", field.key));
    None
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
