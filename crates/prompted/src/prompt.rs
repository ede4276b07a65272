//! The prompt that describes the tools. The same tools always give the same text, so that the host can cache
//! it.

use std::fmt::Write as _;
use std::sync::Arc;

use memchr::memchr2;
use serde_json::Value;
use toolgate_model::{CallKind, Parallel};

use crate::CallPolicy;
use crate::options::PromptedOptions;
use crate::schema::{Notation, Parameter, ToolSpec, Types};
use crate::value::escape::attribute;

/// The built-in prompt.
const TEMPLATE: &str = "\
# Functions

You can call the functions listed below. Their results are returned to you in the next message.

{tools_list}

To call functions, first write this trigger line on its own, exactly as shown:
{trigger_signal}
Directly below it, write one block per call:
<invoke name=\"FUNCTION\">
<parameter name=\"PARAMETER\">VALUE</parameter>
</invoke>

- Write strings raw: no quotes, no escaping, all whitespace exactly as intended.
- Write values of every other type as JSON. Write strings as JSON only where the list says so.
- Start a multi-line value on a new line after the opening tag, and put the closing tag on a new line after the value:
<parameter name=\"PARAMETER\">
first line
second line
</parameter>
- Use function and parameter names exactly as listed, and include every required parameter.
- Do not put calls in a code fence.
- You may write text before the trigger line. After the last </invoke>, stop and write nothing more: the results come next.
- Write the trigger line only to make calls. Do not mention it otherwise.
";

/// The text added to the system prompt.
pub(crate) fn system(
    tools: &[Arc<ToolSpec>],
    trigger: &str,
    options: &PromptedOptions,
    parallel: Parallel,
) -> String {
    let list = tools_list(tools);
    let template = options.prompt_template.as_deref().unwrap_or(TEMPLATE);
    let mut text = fill(template, &list, trigger);
    if parallel == Parallel::Forbidden {
        text.push_str("- Make at most one call per answer.\n");
    }
    text
}

/// The line appended to the last message. It also states whether a call is required.
pub(crate) fn reminder(trigger: &str, policy: &CallPolicy, options: &PromptedOptions) -> Option<String> {
    let demanded = match policy {
        CallPolicy::Required => "You must call at least one function now. ".to_owned(),
        CallPolicy::Named(name) => format!("You must call the function {name} now. "),
        CallPolicy::Optional | CallPolicy::Forbidden => String::new(),
    };
    if demanded.is_empty() && !options.reminder.is_on() {
        return None;
    }
    Some(format!(
        "({demanded}To call functions, write the line {trigger} on its own, then one <invoke name=\"…\"> block per call.)"
    ))
}

/// Fills a template. A valid Python format string, such as Toolify's templates, has doubled braces.
fn fill(template: &str, list: &str, trigger: &str) -> String {
    let doubled = is_format_string(template);
    let mut out = String::with_capacity(template.len() + list.len());
    let mut rest = template;
    while let Some(at) = next_brace(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (mark, meaning) = if rest.starts_with("{tools_list}") {
            ("{tools_list}", list)
        } else if rest.starts_with("{trigger_signal}") {
            ("{trigger_signal}", trigger)
        } else if doubled && rest.starts_with("{{") {
            ("{{", "{")
        } else if doubled && rest.starts_with("}}") {
            ("}}", "}")
        } else {
            (&rest[..1], &rest[..1])
        };
        out.push_str(meaning);
        rest = &rest[mark.len()..];
    }
    out.push_str(rest);
    out
}

/// True if every brace is doubled or part of one of the two placeholders.
fn is_format_string(template: &str) -> bool {
    let mut rest = template;
    while let Some(at) = next_brace(rest) {
        rest = &rest[at..];
        let mark =
            ["{{", "}}", "{tools_list}", "{trigger_signal}"].iter().find(|mark| rest.starts_with(**mark));
        let Some(mark) = mark else { return false };
        rest = &rest[mark.len()..];
    }
    true
}

fn next_brace(text: &str) -> Option<usize> {
    memchr2(b'{', b'}', text.as_bytes())
}

fn tools_list(tools: &[Arc<ToolSpec>]) -> String {
    let mut out = String::from("<function_list>\n");
    for tool in tools {
        // Descriptions are not escaped: that would teach the model to write entities.
        line(&mut out, format_args!("<tool><name>{}</name>", attribute(&tool.name)));
        line(&mut out, format_args!("<description>{}</description>", tool.description));
        line(&mut out, format_args!("<parameters>"));
        for parameter in &tool.parameters {
            parameter_line(parameter, tool.kind, &mut out);
        }
        line(&mut out, format_args!("</parameters></tool>"));
    }
    out.push_str("</function_list>");
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{text}").unwrap_or_default();
}

fn parameter_line(parameter: &Parameter, kind: CallKind, out: &mut String) {
    let description = parameter.schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut attributes =
        format!("name=\"{}\" type=\"{}\"", attribute(&parameter.name), type_names(parameter.types));
    attributes.push_str(if parameter.required { " required=\"true\"" } else { "" });
    // Stated at the parameter, so that it also works with an operator's own prompt.
    attributes.push_str(match parameter.notation {
        Notation::Raw => "",
        Notation::Json => " write_as=\"JSON, strings in double quotes\"",
    });
    if let Some(schema) = shown_schema(&parameter.schema).filter(|_| kind == CallKind::Function) {
        // A single quote would end the attribute, so it is written as a JSON escape.
        let json = schema.to_string().replace('\'', "\\u0027");
        attributes.push_str(" schema='");
        attributes.push_str(&json);
        attributes.push('\'');
    }
    line(out, format_args!("<parameter {attributes}>{description}</parameter>"));
}

/// The part of a schema that the other attributes do not express.
fn shown_schema(schema: &Value) -> Option<Value> {
    let mut fields = schema.as_object()?.clone();
    fields.remove("description");
    fields.remove("title");
    if fields.get("type").is_some_and(Value::is_string) {
        fields.remove("type");
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn type_names(types: Types) -> String {
    const NAMES: [(Types, &str); 7] = [
        (Types::STRING, "string"),
        (Types::NUMBER, "number"),
        (Types::INTEGER, "integer"),
        (Types::BOOLEAN, "boolean"),
        (Types::OBJECT, "object"),
        (Types::ARRAY, "array"),
        (Types::NULL, "null"),
    ];
    if types == Types::ANY {
        return "any".to_owned();
    }
    let named = NAMES.iter().filter(|(one, name)| {
        // Every integer is a number; naming both would be confusing.
        types.has(*one) && !(*name == "integer" && types.has(Types::NUMBER))
    });
    named.map(|(_, name)| *name).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_listed_with_scalars_as_attributes_and_structures_as_schema() {
        let schema = serde_json::json!({"properties": {
            "file_path": {"type": "string", "description": "Where <to> write"},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
            "unit": {"type": "string", "enum": ["it's"]},
            "x\"y": {"type": ["string", "null"]},
        }, "required": ["file_path"], "$defs": {"Edit": {"type": "object"}}});
        let tool = ToolSpec {
            name: "Write".into(),
            description: "Writes a <file> & more.".into(),
            kind: CallKind::Function,
            parameters: crate::schema::parameters(&schema),
        };
        let expect = "<function_list>
<tool><name>Write</name>
<description>Writes a <file> & more.</description>
<parameters>
<parameter name=\"file_path\" type=\"string\" required=\"true\">Where <to> write</parameter>
<parameter name=\"edits\" type=\"array\" schema='{\"items\":{\"type\":\"object\"}}'></parameter>
<parameter name=\"unit\" type=\"string\" schema='{\"enum\":[\"it\\u0027s\"]}'></parameter>
<parameter name=\"x&quot;y\" type=\"string|null\" schema='{\"type\":[\"string\",\"null\"]}'></parameter>
</parameters></tool>
</function_list>";
        assert_eq!(tools_list(&[Arc::new(tool)]), expect);
    }

    #[test]
    fn valid_format_strings_are_filled_like_in_python() {
        assert_eq!(fill("{tools_list} {{x}} {trigger_signal}", "L", "S"), "L {x} S");
        assert_eq!(fill("{tools_list} {x} {{y}} {trigger_signal}", "L", "S"), "L {x} {{y}} S");
        assert_eq!(fill("{tools_list}", "{trigger_signal}", "S"), "{trigger_signal}");
        assert_eq!(fill("{{{tools_list}}}", "L", "S"), "{L}");
        assert_eq!(fill("{{} {tools_list}", "L", "S"), "{{} L");
        assert_eq!(fill("{tools_list{{}}} é", "L", "S"), "{tools_list{{}}} é");
    }
}
