//! Types, enum values and references of schemas.

use super::*;
use serde_json::json;

fn check(schema: &Value, types: Types, members: &[Value]) {
    let whole = json!({"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": {
        "Name": {"type": "string"},
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}},
    }});
    let parameters = parameters(&whole);
    assert_eq!((parameters[0].types, parameters[0].enum_values.as_slice()), (types, members), "{schema}");
    assert!(parameters[0].required);
    assert!(!parameters[0].schema.to_string().contains("$ref"), "{}", parameters[0].schema);
}

#[test]
fn types_come_from_every_schema_keyword() {
    check(&json!({"type": "string"}), Types::STRING, &[]);
    check(&json!({"type": ["string", "null"]}), Types::STRING.or(Types::NULL), &[]);
    check(&json!({"type": "string", "default": null}), Types::STRING.or(Types::NULL), &[]);
    check(&json!({"type": "string", "nullable": true}), Types::STRING.or(Types::NULL), &[]);
    check(&json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), Types::STRING.or(Types::NULL), &[]);
    check(&json!({"$ref": "#/$defs/Name"}), Types::STRING, &[]);
    check(
        &json!({"oneOf": [{"$ref": "#/$defs/Name"}, {"type": "integer"}]}),
        Types::STRING.or(Types::INTEGER),
        &[],
    );
    check(&json!({"$ref": "#/$defs/Node"}), Types::OBJECT, &[]);
    check(&json!({"enum": ["a", "b"]}), Types::STRING, &[json!("a"), json!("b")]);
    check(&json!({"const": 5}), Types::NUMBER.or(Types::INTEGER), &[json!(5)]);
    check(
        &json!({"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}),
        Types::STRING.or(Types::NULL),
        &[json!("a"), json!("b"), Value::Null],
    );
    check(&json!({"allOf": [{"type": "string"}, {"minLength": 1}]}), Types::STRING, &[]);
    check(&json!({"type": "float"}), Types::NUMBER.or(Types::INTEGER), &[]);
    check(&json!({"properties": {}}), Types::OBJECT, &[]);
    check(&json!({"description": "anything"}), Types::ANY, &[]);
    check(&json!(true), Types::ANY, &[]);
}

#[test]
fn provider_tools_get_a_built_in_schema_or_are_a_loss() {
    let dialect = toolgate_model::DialectId { name: "anthropic-messages", provider: "anthropic" };
    let provider = |kind: &str, name: &str| {
        let fields = json!({"type": kind, "name": name}).as_object().unwrap().clone();
        Tool::Provider(toolgate_model::Opaque { dialect, kind: kind.to_owned(), fields })
    };
    let mut losses = Losses::default();
    let bash = ToolSpec::of(&provider("bash_20250124", "bash"), &mut losses).unwrap();
    assert_eq!(bash.parameters[0].name, "command");
    let editor = ToolSpec::of(&provider("text_editor_20250728", "edit"), &mut losses).unwrap();
    assert!(editor.parameters.iter().any(|parameter| parameter.name == "old_str"));
    assert!(losses.is_empty());
    assert_eq!(ToolSpec::of(&provider("web_search_20250305", "web_search"), &mut losses), None);
    assert!(losses.contains("tools[web_search_20250305]"));
}
