//! Web pages that a text cites reach clients of every dialect.

use serde_json::{Value, json};

use super::{CHAT, MESSAGES, Pair, RESPONSES, chat_reply, chat_stream, items_done};

fn url_citation(start: u64, end: u64) -> Value {
    json!({ "start_index": start, "end_index": end, "title": "Oslo", "url": "https://example.org/oslo" })
}

fn web_page(cited: &str, index: &str) -> Value {
    json!({ "type": "web_search_result_location", "cited_text": cited, "url": "https://example.org/oslo",
            "title": "Oslo", "encrypted_index": index })
}

#[test]
fn a_chat_hosts_annotations_are_citations_of_a_message() {
    let pair = Pair::new(MESSAGES, CHAT);
    let request =
        json!({ "model": "m", "max_tokens": 999, "messages": [{ "role": "user", "content": "weather?" }] });
    let annotation = json!({ "type": "url_citation", "url_citation": url_citation(3, 7) });
    let message = json!({ "role": "assistant", "content": "It rains.", "annotations": [annotation] });
    let reply = pair.reply(&request, chat_reply(message.clone()));
    assert_eq!(reply["content"][0]["citations"], json!([web_page("rain", "")]));
    assert_eq!(pair.reply_losses(&request, chat_reply(message)), Vec::<String>::new());
    let deltas = [json!({ "content": "It rains." }), json!({ "annotations": [annotation] })];
    let frames = pair.stream(&request, &chat_stream(&deltas));
    let citations: Vec<&Value> = frames.iter().filter_map(|frame| frame["delta"].get("citation")).collect();
    assert_eq!(citations, [&web_page("rain", "")]);
}

#[test]
fn a_messages_citations_are_annotations() {
    let reply = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "It rains.", "citations": [web_page("Rain all day", "ZW5j")] }],
        "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let chat = Pair::new(CHAT, MESSAGES);
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "weather?" }] });
    let expect = json!([{ "type": "url_citation", "url_citation": url_citation(0, 9) }]);
    assert_eq!(chat.reply(&request, reply.clone())["choices"][0]["message"]["annotations"], expect);
    assert_eq!(chat.reply_losses(&request, reply.clone()), Vec::<String>::new());

    let responses = Pair::new(RESPONSES, MESSAGES);
    let request = json!({ "model": "m", "input": "weather?" });
    let mut annotation = url_citation(0, 9);
    annotation["type"] = json!("url_citation");
    assert_eq!(
        responses.reply(&request, reply)["output"][0]["content"][0]["annotations"],
        json!([annotation])
    );
    let frames = [
        json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "It rains." } }),
        json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "citations_delta", "citation": web_page("Rain all day", "ZW5j") } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let items = items_done(&responses.stream(&request, &frames));
    assert_eq!(items[0]["content"][0]["annotations"], json!([annotation]));
}
