//! Values of every type, in chunks of every size.

use serde_json::{Value, json};

use super::*;
use crate::schema::Presence;

/// Encodes `text` in chunks of every size and expects `{"x":…}` each time.
fn check(schema: &Value, text: &str, expect: &str) {
    for size in [1, 2, 3, 7, usize::MAX] {
        let got = encode(schema, text, Markup::Plain, size);
        assert_eq!(got, Ok(format!("{{\"x\":{expect}}}")), "{schema} {text:?} by {size}");
    }
}

fn check_rejected(schema: &Value, text: &str) {
    assert_eq!(encode(schema, text, Markup::Plain, 3), Err(text.to_owned()));
}

fn encode(schema: &Value, text: &str, markup: Markup, size: usize) -> Result<String, String> {
    let parameter = Parameter::new("x".into(), schema.clone(), Presence::Optional);
    let mut writer = ArgumentWriter::new(CallKind::Function);
    let mut encoder = Encoder::new(parameter, CallKind::Function, markup);
    let mut out = String::new();
    encoder.open(&mut writer, &mut out);
    let characters = text.chars().collect::<Vec<_>>();
    for piece in characters.chunks(size.min(characters.len().max(1))) {
        encoder.push(&piece.iter().collect::<String>(), &mut writer, &mut out);
    }
    if let CloseOutcome::Unreadable(text) = encoder.close(CloseKind::Tag, &mut writer, &mut out) {
        return Err(text);
    }
    writer.end(&mut out);
    Ok(out)
}

#[test]
fn strings_are_raw() {
    let string = json!({"type": "string"});
    check(&string, "2022", "\"2022\""); // P16
    check(&string, "null", "\"null\""); // P16
    check(&string, "&lt;div&gt;", "\"&lt;div&gt;\""); // P13
    check(&string, "\"q\" \\ \u{1} \u{1f680}", "\"\\\"q\\\" \\\\ \\u0001 \u{1f680}\""); // P21
    check(&string, "", "\"\"");
}

#[test]
fn one_newline_on_each_side_of_a_block_is_layout() {
    // P20
    let string = json!({"type": "string"});
    check(&string, "\n  x\n", "\"  x\"");
    check(&string, "\n\n  x\n\n", "\"\\n  x\\n\"");
    check(&string, "x\n", "\"x\\n\"");
    check(&string, "\r\nx\r\n", "\"x\"");
    check(&string, "\nx\r\n", "\"x\\r\"");
    check(&string, "\rx", "\"\\rx\"");
    check(&string, "\r", "\"\\r\"");
    check(&string, "\n", "\"\"");
}

#[test]
fn union_types_are_decided_by_the_schema() {
    // P17
    let nullable = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    check(&nullable, "abc", "\"abc\"");
    check(&nullable, "null", "null");
    check(&nullable, "\nnull\n", "null");
    check(&nullable, "nullable", "\"nullable\"");
    check(&nullable, " null", "\" null\"");
    check(&nullable, "", "\"\"");
    assert_eq!(encode(&nullable, "null", Markup::Cdata, 2), Ok("{\"x\":\"null\"}".into()));
    let mixed = json!({"type": ["string", "integer", "object"]});
    check(&mixed, "5", "5");
    check(&mixed, "5 apples", "\"5 apples\"");
    check(&mixed, "\"5\"", "\"5\"");
    check(&mixed, "{\"a\":1}", "{\"a\":1}");
    check(&mixed, "{a}", "\"{a}\"");
    check(&mixed, "true", "\"true\"");
    check(&mixed, &"9".repeat(65), &format!("\"{}\"", "9".repeat(65)));
    check(&json!(true), "plain", "\"plain\"");
    check(&json!(true), "[1]", "[1]");
}

#[test]
fn enum_values_are_matched_if_unambiguous() {
    // P18
    let unit = json!({"enum": ["celsius", "fahrenheit"]});
    check(&unit, "celsius", "\"celsius\"");
    check(&unit, "\"Celsius\"", "\"celsius\"");
    check(&unit, "\n celsius\n", "\"celsius\"");
    check(&unit, "kelvin", "\"kelvin\"");
    check(&json!({"enum": ["a", "A"]}), "a", "\"a\"");
    check(&json!({"enum": [1, 2]}), "2", "2");
}

#[test]
fn scalars_are_converted_and_keep_their_digits() {
    // P19
    let integer = json!({"type": "integer"});
    check(&integer, " 7 ", "7");
    check(&integer, "5.0", "5");
    check(&integer, "\"5\"", "5");
    check(&integer, "123456789012345678901234567890", "123456789012345678901234567890");
    check(&json!({"type": "number"}), "0.10", "0.10");
    for (text, expect) in [("True", "true"), ("yes", "true"), ("1", "true"), ("false", "false")] {
        check(&json!({"type": "boolean"}), text, expect);
    }
    check(&json!({"type": ["integer", "null"]}), "None", "null");
    check_rejected(&integer, "5.5");
    check_rejected(&integer, "five");
    check_rejected(&integer, "");
}

#[test]
fn objects_and_arrays_are_json_or_unambiguous_almost_json() {
    let object = json!({"type": "object"});
    check(&object, "{\"a\":[1,{\"b\":null}]}", "{\"a\":[1,{\"b\":null}]}"); // P14
    check(&object, "{'a': True, b: None,}", "{\"a\":true,\"b\":null}"); // P14
    check(&object, "{\"a\":\"x\ny\"}", "{\"a\":\"x\\ny\"}"); // P14
    check(&object, "{\"a\":\"\\$HOME \\d\"}", "{\"a\":\"$HOME \\\\d\"}"); // P14
    check(&object, "{&quot;a&quot;:1}", "{\"a\":1}"); // P13
    check(&object, "\"{\\\"a\\\":1}\"", "{\"a\":1}"); // P15
    check(&json!({"type": "array"}), "[1, 2,]", "[1,2]");
    check_rejected(&object, "{\"a\":1");
    check_rejected(&object, "[1]");
    check_rejected(&object, "{\"a\" 1}");
    check_rejected(&object, "hello");
    assert_eq!(encode(&json!({"type": "string"}), "[1]", Markup::Json, 2), Ok("{\"x\":\"[1]\"}".into()));
    assert_eq!(encode(&json!({}), "5", Markup::String, 2), Ok("{\"x\":\"5\"}".into()));
}
