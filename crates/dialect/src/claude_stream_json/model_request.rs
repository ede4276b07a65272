//! The program's requests to its model. With the client's instructions alone, what the program adds to them is removed:
//! its name, the date, and the folder and system it runs on. No option switches these off in every version.

use serde_json::Value;

use super::INSTRUCTIONS_MARK;

/// How the program begins the context that older versions add to the first message.
const CONTEXT: &str =
    "<system-reminder>\nAs you answer the user's questions, you can use the following context:";

/// The request with the client's instructions alone; `None` if the program's own instructions are not in it, so that it
/// can be sent as it is.
pub fn without_program_prompt(body: &[u8]) -> Option<Vec<u8>> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let fields = request.as_object_mut()?;
    let instructions = instructions(fields.get("system")?)?;
    if instructions.is_empty() {
        fields.remove("system");
    } else {
        fields.insert("system".to_owned(), Value::Array(instructions));
    }
    if let Some(messages) = fields.get_mut("messages").and_then(Value::as_array_mut) {
        // Clients' system messages reach the program as user messages, so these are its own.
        messages.retain(|message| message["role"] != "system");
        messages.first_mut().map(remove_context);
    }
    serde_json::to_vec(&request).ok()
}

/// The blocks of the client's instructions; `None` if there is no mark.
fn instructions(system: &Value) -> Option<Vec<Value>> {
    let mut blocks = system.as_array()?.iter().cloned();
    let (mut first, text) = blocks.find_map(|block| {
        let text = block["text"].as_str()?.strip_prefix(INSTRUCTIONS_MARK)?.to_owned();
        Some((block, text))
    })?;
    if text.is_empty() {
        return Some(blocks.collect());
    }
    first["text"] = Value::String(text);
    Some(std::iter::once(first).chain(blocks).collect())
}

fn remove_context(message: &mut Value) {
    let Some(blocks) = message["content"].as_array_mut() else { return };
    let is_context = |block: &Value| block["text"].as_str().is_some_and(|text| text.starts_with(CONTEXT));
    if blocks.len() > 1 && blocks.first().is_some_and(is_context) {
        blocks.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn request(system: &[&str], messages: &Value) -> Value {
        let system: Vec<Value> = system.iter().copied().map(text).collect();
        json!({ "model": "m", "system": system, "messages": messages, "stream": true })
    }

    #[track_caller]
    fn check(written: &Value, expected: Option<&Value>) {
        let changed = without_program_prompt(written.to_string().as_bytes());
        let changed = changed.map(|body| serde_json::from_slice::<Value>(&body).expect("JSON"));
        assert_eq!(changed.as_ref(), expected);
    }

    #[test]
    fn only_the_clients_instructions_remain() {
        let user = json!([{ "role": "user", "content": [text("go")] }]);
        let own = "You are a Claude agent.";
        let mut without = request(&[], &user);
        without.as_object_mut().expect("an object").remove("system");
        for (written, expected) in [
            (request(&[own, "[instructions]\nBe brief."], &user), request(&["Be brief."], &user)),
            (request(&["[instructions]\n[instructions]\na"], &user), request(&["[instructions]\na"], &user)),
            (request(&[own, "[instructions]\n"], &user), without),
        ] {
            check(&written, Some(&expected));
        }
    }

    #[test]
    fn the_programs_own_messages_are_removed() {
        let context = format!("{CONTEXT}\n# currentDate\n…</system-reminder>");
        let written = json!([
            { "role": "user", "content": [text(&context), text("go")] },
            { "role": "system", "content": [text("# Environment\n…")], "output_config": { "effort": "low" } },
            { "role": "assistant", "content": [text("Yes.")] },
            { "role": "user", "content": [text(&context), text("on")] },
        ]);
        let expected = json!([
            { "role": "user", "content": [text("go")] },
            { "role": "assistant", "content": [text("Yes.")] },
            { "role": "user", "content": [text(&context), text("on")] },
        ]);
        check(&request(&["[instructions]\na"], &written), Some(&request(&["a"], &expected)));
        let alone = json!([{ "role": "user", "content": [text(&context)] }]);
        check(&request(&["[instructions]\na"], &alone), Some(&request(&["a"], &alone)));
    }

    #[test]
    fn a_request_without_the_mark_is_left_alone() {
        let user = json!([{ "role": "user", "content": "go" }]);
        check(&request(&["You write titles."], &user), None);
        check(&json!({ "model": "m", "messages": user }), None);
        check(&json!([]), None);
        assert_eq!(without_program_prompt(b"{"), None);
    }
}
