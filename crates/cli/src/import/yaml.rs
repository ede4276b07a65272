//! YAML with the place of every value, read as Toolify reads it.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

use crate::config::problem::{Place, Placed, Reading};

/// What the outermost mapping is called in messages.
pub(super) const ROOT: &str = "the file";

/// The first document of a text; None after saying what is wrong with it.
pub(super) fn parse<'t>(text: &'t str, reading: &mut Reading<'_>) -> Option<MarkedYaml<'t>> {
    match MarkedYaml::load_from_str(text) {
        Ok(documents) if documents.is_empty() => {
            reading.error_anywhere("is empty: name Toolify's config.yaml");
            None
        }
        Ok(mut documents) => Some(documents.swap_remove(0)),
        Err(error) => {
            let at = error.marker();
            let place = Place { line: at.line(), column: at.col() + 1 };
            reading.error(place, format!("is not YAML here ({}): mend the line", error.info()));
            None
        }
    }
}

/// A mapping, and what to call it in a message.
pub(super) struct Map<'y> {
    path: String,
    place: Place,
    entries: Vec<(Placed<String>, &'y MarkedYaml<'y>)>,
}

impl<'y> Map<'y> {
    /// None after reporting that it is none. An empty value is an empty mapping, as Toolify takes it.
    pub(super) fn of(
        node: &'y MarkedYaml<'y>,
        path: impl Into<String>,
        reading: &mut Reading<'_>,
    ) -> Option<Self> {
        let (path, place) = (path.into(), place(node));
        let entries = if let YamlData::Mapping(mapping) = &node.data {
            mapping.iter().filter_map(|(key, value)| Some((word(key)?, value))).collect()
        } else if is_null(node) {
            Vec::new()
        } else {
            reading.error(place, format!("{path} must be a mapping of keys and values"));
            return None;
        };
        Some(Self { path, place, entries })
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The keys that are not among these.
    pub(super) fn others(&self, known: &[&str]) -> Vec<&Placed<String>> {
        let keys = self.entries.iter().map(|(key, _)| key);
        keys.filter(|key| !known.contains(&key.value.as_str())).collect()
    }

    /// A mapping inside; empty where the key is not there.
    pub(super) fn map(&self, key: &str, reading: &mut Reading<'_>) -> Option<Map<'y>> {
        match self.get(key) {
            Some(node) => Self::of(node, self.name(key), reading),
            None => Some(Self { path: self.name(key), place: self.place, entries: Vec::new() }),
        }
    }

    /// The items of a list; empty where the key is not there.
    pub(super) fn list(&self, key: &str, reading: &mut Reading<'_>) -> &'y [MarkedYaml<'y>] {
        let Some(node) = self.get(key) else { return &[] };
        if let YamlData::Sequence(items) = &node.data {
            return items;
        }
        if !is_null(node) {
            let problem = format!("{} must be a list: begin each line with `- `", self.name(key));
            reading.error(place(node), problem);
        }
        &[]
    }

    pub(super) fn text(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<String>> {
        let node = self.get(key)?;
        text(node, &self.name(key), reading)
    }

    pub(super) fn needed_text(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<String>> {
        if self.get(key).is_none() {
            reading.error(self.place, format!("{} lacks `{key}`", self.path));
        }
        self.text(key, reading).filter(|text| {
            let filled = !text.value.trim().is_empty();
            if !filled {
                reading.error(text.place, format!("{} must not be empty", self.name(key)));
            }
            filled
        })
    }

    pub(super) fn flag(&self, key: &str, reading: &mut Reading<'_>) -> Option<Placed<bool>> {
        let node = self.get(key)?;
        if is_null(node) {
            return None;
        }
        let value = match scalar(node) {
            Some(Scalar::Boolean(value)) => Some(*value),
            // The YAML of 2005, which Toolify's reader speaks, has more words.
            Some(Scalar::String(word)) => match word.to_ascii_lowercase().as_str() {
                "yes" | "on" => Some(true),
                "no" | "off" => Some(false),
                _ => None,
            },
            Some(Scalar::Null | Scalar::Integer(_) | Scalar::FloatingPoint(_)) | None => None,
        };
        if value.is_none() {
            reading.error(place(node), format!("{} must be true or false", self.name(key)));
        }
        value.map(|value| Placed { value, place: place(node) })
    }

    /// A whole number between these two.
    pub(super) fn number(
        &self,
        key: &str,
        range: [u32; 2],
        reading: &mut Reading<'_>,
    ) -> Option<Placed<u32>> {
        let node = self.get(key)?;
        let [least, most] = range;
        if is_null(node) {
            return None;
        }
        let value = match scalar(node) {
            Some(Scalar::Integer(value)) => u32::try_from(*value).ok(),
            Some(Scalar::Null | Scalar::Boolean(_) | Scalar::String(_) | Scalar::FloatingPoint(_)) | None => {
                None
            }
        };
        let value = value.filter(|value| (least..=most).contains(value));
        if value.is_none() {
            let name = self.name(key);
            reading.error(place(node), format!("{name} must be a whole number from {least} to {most}"));
        }
        value.map(|value| Placed { value, place: place(node) })
    }

    fn get(&self, key: &str) -> Option<&'y MarkedYaml<'y>> {
        self.entries.iter().find(|(name, _)| name.value == key).map(|(_, node)| *node)
    }

    fn name(&self, key: &str) -> String {
        if self.path == ROOT { format!("`{key}`") } else { format!("`{key}` of {}", self.path) }
    }
}

/// A text; None after reporting that it is none, and in silence where the value is empty.
pub(super) fn text(node: &MarkedYaml<'_>, name: &str, reading: &mut Reading<'_>) -> Option<Placed<String>> {
    if is_null(node) {
        return None;
    }
    let found = word(node);
    if found.is_none() {
        reading.error(place(node), format!("{name} must be a text: put it into quotes"));
    }
    found
}

fn word(node: &MarkedYaml<'_>) -> Option<Placed<String>> {
    let Some(Scalar::String(text)) = scalar(node) else { return None };
    Some(Placed { value: text.to_string(), place: place(node) })
}

fn scalar<'n, 'y>(node: &'n MarkedYaml<'y>) -> Option<&'n Scalar<'y>> {
    if let YamlData::Value(scalar) = &node.data { Some(scalar) } else { None }
}

fn is_null(node: &MarkedYaml<'_>) -> bool {
    matches!(scalar(node), Some(Scalar::Null))
}

pub(super) fn place(node: &MarkedYaml<'_>) -> Place {
    Place { line: node.span.start.line(), column: node.span.start.col() + 1 }
}
