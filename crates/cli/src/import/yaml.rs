//! Reads YAML with the position of every value, in the dialect that Toolify accepts.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

use crate::config::problem::{Located, Position, ReadContext};

/// The name of the outermost mapping in messages.
pub(super) const ROOT: &str = "the file";

/// The first document of a text; `None` after reporting a problem.
pub(super) fn parse<'t>(text: &'t str, context: &mut ReadContext<'_>) -> Option<MarkedYaml<'t>> {
    match MarkedYaml::load_from_str(text) {
        Ok(documents) if documents.is_empty() => {
            context.error_in_file("is empty: use Toolify's config.yaml");
            None
        }
        Ok(mut documents) => Some(documents.swap_remove(0)),
        Err(error) => {
            let at = error.marker();
            let position = Position { line: at.line(), column: at.col() + 1 };
            context.error(position, format!("invalid YAML ({}): correct this line", error.info()));
            None
        }
    }
}

/// A mapping and its name in messages.
pub(super) struct YamlMap<'y> {
    path: String,
    position: Position,
    entries: Vec<(Located<String>, &'y MarkedYaml<'y>)>,
}

impl<'y> YamlMap<'y> {
    /// `None` after reporting that it is not a mapping. An empty value is an empty mapping, as in Toolify.
    pub(super) fn of(
        node: &'y MarkedYaml<'y>,
        path: impl Into<String>,
        context: &mut ReadContext<'_>,
    ) -> Option<Self> {
        let (path, position) = (path.into(), position(node));
        let entries = if let YamlData::Mapping(mapping) = &node.data {
            mapping.iter().filter_map(|(key, value)| Some((string(key)?, value))).collect()
        } else if is_null(node) {
            Vec::new()
        } else {
            context.error(position, format!("{path} must be a mapping of keys and values"));
            return None;
        };
        Some(Self { path, position, entries })
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// All other keys.
    pub(super) fn unknown_keys(&self, known: &[&str]) -> Vec<&Located<String>> {
        let keys = self.entries.iter().map(|(key, _)| key);
        keys.filter(|key| !known.contains(&key.value.as_str())).collect()
    }

    /// The mapping under a key; empty if the key is missing.
    pub(super) fn map(&self, key: &str, context: &mut ReadContext<'_>) -> Option<YamlMap<'y>> {
        match self.get(key) {
            Some(node) => Self::of(node, self.name(key), context),
            None => Some(Self { path: self.name(key), position: self.position, entries: Vec::new() }),
        }
    }

    /// The items of a list; empty if the key is missing.
    pub(super) fn list(&self, key: &str, context: &mut ReadContext<'_>) -> &'y [MarkedYaml<'y>] {
        let Some(node) = self.get(key) else { return &[] };
        if let YamlData::Sequence(items) = &node.data {
            return items;
        }
        if !is_null(node) {
            let problem = format!("{} must be a list: begin each line with `- `", self.name(key));
            context.error(position(node), problem);
        }
        &[]
    }

    pub(super) fn text(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<String>> {
        let node = self.get(key)?;
        text(node, &self.name(key), context)
    }

    pub(super) fn required_text(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<String>> {
        if self.get(key).is_none() {
            context.error(self.position, format!("{} lacks `{key}`", self.path));
        }
        self.text(key, context).filter(|text| {
            let filled = !text.value.trim().is_empty();
            if !filled {
                context.error(text.position, format!("{} must not be empty", self.name(key)));
            }
            filled
        })
    }

    pub(super) fn flag(&self, key: &str, context: &mut ReadContext<'_>) -> Option<Located<bool>> {
        let node = self.get(key)?;
        if is_null(node) {
            return None;
        }
        let value = match scalar(node) {
            Some(Scalar::Boolean(value)) => Some(*value),
            // Toolify's parser reads YAML 1.1, which has more names for booleans.
            Some(Scalar::String(word)) => match word.to_ascii_lowercase().as_str() {
                "yes" | "on" => Some(true),
                "no" | "off" => Some(false),
                _ => None,
            },
            Some(Scalar::Null | Scalar::Integer(_) | Scalar::FloatingPoint(_)) | None => None,
        };
        if value.is_none() {
            context.error(position(node), format!("{} must be true or false", self.name(key)));
        }
        value.map(|value| Located { value, position: position(node) })
    }

    /// A whole number in this range, inclusive.
    pub(super) fn number(
        &self,
        key: &str,
        range: [u32; 2],
        context: &mut ReadContext<'_>,
    ) -> Option<Located<u32>> {
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
            context.error(position(node), format!("{name} must be a whole number from {least} to {most}"));
        }
        value.map(|value| Located { value, position: position(node) })
    }

    fn get(&self, key: &str) -> Option<&'y MarkedYaml<'y>> {
        self.entries.iter().find(|(name, _)| name.value == key).map(|(_, node)| *node)
    }

    fn name(&self, key: &str) -> String {
        if self.path == ROOT { format!("`{key}`") } else { format!("`{key}` of {}", self.path) }
    }
}

/// A string; `None` after reporting another type, or if the value is empty.
pub(super) fn text(
    node: &MarkedYaml<'_>,
    name: &str,
    context: &mut ReadContext<'_>,
) -> Option<Located<String>> {
    if is_null(node) {
        return None;
    }
    let found = string(node);
    if found.is_none() {
        context.error(position(node), format!("{name} must be a string: put it in quotes"));
    }
    found
}

fn string(node: &MarkedYaml<'_>) -> Option<Located<String>> {
    let Some(Scalar::String(text)) = scalar(node) else { return None };
    Some(Located { value: text.to_string(), position: position(node) })
}

fn scalar<'n, 'y>(node: &'n MarkedYaml<'y>) -> Option<&'n Scalar<'y>> {
    if let YamlData::Value(scalar) = &node.data { Some(scalar) } else { None }
}

fn is_null(node: &MarkedYaml<'_>) -> bool {
    matches!(scalar(node), Some(Scalar::Null))
}

pub(super) fn position(node: &MarkedYaml<'_>) -> Position {
    Position { line: node.span.start.line(), column: node.span.start.col() + 1 }
}
