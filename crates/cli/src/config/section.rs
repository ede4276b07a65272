//! One table of the config file, read field by field: types are checked and unknown keys named.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duration::parse_duration;
use super::nearest::suggestion;
use super::problem::{Place, Placed, Reading};
use super::size::parse_size;

/// A table and the name it goes by in messages.
pub(crate) struct Section<'t> {
    name: String,
    place: Place,
    fields: Vec<Field<'t>>,
}

/// One `key = value` of a table.
pub(crate) struct Field<'t> {
    pub(crate) key: &'t str,
    /// Where the key stands.
    pub(crate) place: Place,
    pub(crate) value: &'t DeValue<'t>,
    value_place: Place,
}

impl<'t> Section<'t> {
    /// The whole file.
    pub(crate) fn root(table: &'t Spanned<DeTable<'t>>, reading: &Reading<'_>) -> Self {
        Self::of(String::new(), Place { line: 1, column: 1 }, table.get_ref(), reading)
    }

    fn of(name: String, place: Place, table: &'t DeTable<'t>, reading: &Reading<'_>) -> Self {
        let mut fields: Vec<Field<'t>> = table
            .iter()
            .map(|(key, value)| Field {
                key: key.get_ref(),
                place: reading.place(&key.span()),
                value: value.get_ref(),
                value_place: reading.place(&value.span()),
            })
            .collect();
        // The parser sorts by name; people think in the order they wrote.
        fields.sort_by_key(|field| field.place);
        Self { name, place, fields }
    }

    /// `[upstreams.openai]`, as it stands in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where the table begins.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Where a key stands, if it is there.
    pub(crate) fn key_place(&self, key: &str) -> Option<Place> {
        self.field(key).map(|field| field.place)
    }

    /// Reports every key that is not among these.
    pub(crate) fn expect_keys(&self, known: &[&'static str], reading: &mut Reading<'_>) {
        for field in &self.fields {
            if !known.contains(&field.key) {
                let scope = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
                let hint = suggestion(field.key, known.iter().copied(), "keys known here");
                reading.error(field.place, format!("unknown key `{}`{scope}{hint}", field.key));
            }
        }
    }

    /// Reports that a key must be there, with a line to add.
    pub(crate) fn missing(&self, line_to_add: &str, reading: &mut Reading<'_>) {
        reading.error(self.place, format!("{} lacks a key: add `{line_to_add}`", self.name));
    }

    pub(crate) fn text(&self, key: &str, example: &str, reading: &mut Reading<'_>) -> Option<Placed<String>> {
        self.field(key)?.text(example, reading)
    }

    pub(crate) fn flag(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<bool>> {
        let field = self.field(key)?;
        let Some(flag) = field.value.as_bool() else { return wrong_type(field, "true or false", reading) };
        Some(field.placed(flag))
    }

    pub(crate) fn count(&self, key: &str, most: u32, reading: &mut Reading<'_>) -> Option<Placed<u32>> {
        let field = self.field(key)?;
        let wanted = format!("a whole number from 0 to {most}");
        let Some(digits) = field.value.as_integer() else { return wrong_type(field, &wanted, reading) };
        let number =
            u32::from_str_radix(digits.as_str(), digits.radix()).ok().filter(|number| *number <= most);
        if number.is_none() {
            reading.error(field.value_place, format!("`{key}` must be {wanted}, not {digits}"));
        }
        number.map(|number| field.placed(number))
    }

    /// A positive number, whole or not.
    pub(crate) fn amount(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<f64>> {
        const WANTED: &str = "a number above 0";
        let field = self.field(key)?;
        let written = match &field.value {
            DeValue::Integer(digits) => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return wrong_type(field, WANTED, reading),
        };
        let amount = written.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
        if amount.is_none() {
            reading.error(field.value_place, format!("`{key}` must be {WANTED}, not {written}"));
        }
        amount.map(|amount| field.placed(amount))
    }

    pub(crate) fn duration(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<Duration>> {
        parsed(key, &self.text(key, "30s", reading)?, parse_duration, reading)
    }

    /// A number of bytes, written with its unit.
    pub(crate) fn size(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<usize>> {
        parsed(key, &self.text(key, "32MiB", reading)?, parse_size, reading)
    }

    /// A list of strings, or one string standing for a list of one where `OneOrMany` says so.
    pub(crate) fn texts(
        &self,
        key: &str,
        form: ListForm,
        reading: &mut Reading<'_>,
    ) -> Option<Vec<Placed<String>>> {
        let field = self.field(key)?;
        if let Some(items) = field.value.as_array() {
            return Some(strings(key, items, reading));
        }
        match form {
            ListForm::Many => wrong_type(field, "a list of strings", reading),
            ListForm::OneOrMany => match field.value.as_str() {
                Some(text) => Some(vec![field.placed(text.to_owned())]),
                None => wrong_type(field, "a string or a list of strings", reading),
            },
        }
    }

    /// The table under a key, if it is there.
    pub(crate) fn table(&self, key: &str, reading: &mut Reading<'_>) -> Option<Section<'t>> {
        let field = self.field(key)?;
        let name = self.child_name(key);
        let Some(table) = field.value.as_table() else {
            return wrong_type(field, &format!("a table, written {name}"), reading);
        };
        Some(Self::of(name, field.place, table, reading))
    }

    /// Every table under a key, such as all of `[upstreams.*]`, with its own name.
    pub(crate) fn tables(&self, key: &str, reading: &mut Reading<'_>) -> Vec<(Placed<String>, Section<'t>)> {
        let Some(parent) = self.table(key, reading) else { return Vec::new() };
        let mut tables = Vec::new();
        for field in &parent.fields {
            if let Some(section) = parent.table(field.key, reading) {
                tables.push((Placed { value: field.key.to_owned(), place: field.place }, section));
            }
        }
        tables
    }

    /// Every table of `[[key]]`.
    pub(crate) fn table_list(&self, key: &str, reading: &mut Reading<'_>) -> Vec<Section<'t>> {
        let Some(field) = self.field(key) else { return Vec::new() };
        let name = format!("[[{key}]]");
        let Some(items) = field.value.as_array() else {
            wrong_type::<()>(field, &format!("a list of tables, each written {name}"), reading);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for item in items {
            let place = reading.place(&item.span());
            let Some(table) = item.get_ref().as_table() else {
                let found = type_name(item.get_ref());
                reading.error(place, format!("{name} must be a table, not {found}"));
                continue;
            };
            sections.push(Self::of(name.clone(), place, table, reading));
        }
        sections
    }

    /// Every field, in the order of the file.
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
    /// The value where it is a string; reports it where it is not.
    pub(crate) fn text(&self, example: &str, reading: &mut Reading<'_>) -> Option<Placed<String>> {
        let Some(text) = self.value.as_str() else {
            return wrong_type(self, &format!("a string, such as \"{example}\""), reading);
        };
        Some(self.placed(text.to_owned()))
    }

    fn placed<T>(&self, value: T) -> Placed<T> {
        Placed { value, place: self.value_place }
    }
}

/// How a list may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// `["a", "b"]` only.
    Many,
    /// `"a"` or `["a", "b"]`.
    OneOrMany,
}

fn parsed<T>(
    key: &str,
    text: &Placed<String>,
    parse: fn(&str) -> Result<T, &'static str>,
    reading: &mut Reading<'_>,
) -> Option<Placed<T>> {
    match parse(&text.value) {
        Ok(value) => Some(Placed { value, place: text.place }),
        Err(why) => {
            reading.error(text.place, format!("`{key}` is \"{}\": {why}", text.value));
            None
        }
    }
}

fn strings(key: &str, items: &[Spanned<DeValue<'_>>], reading: &mut Reading<'_>) -> Vec<Placed<String>> {
    let mut texts = Vec::new();
    for item in items {
        let place = reading.place(&item.span());
        let Some(text) = item.get_ref().as_str() else {
            let found = type_name(item.get_ref());
            reading.error(place, format!("`{key}` must hold strings only, not {found}"));
            continue;
        };
        texts.push(Placed { value: text.to_owned(), place });
    }
    texts
}

// The value itself is never repeated: it may be a secret written in the wrong place.
fn wrong_type<T>(field: &Field<'_>, wanted: &str, reading: &mut Reading<'_>) -> Option<T> {
    let found = type_name(field.value);
    reading.error(field.value_place, format!("`{}` must be {wanted}, not {found}", field.key));
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
