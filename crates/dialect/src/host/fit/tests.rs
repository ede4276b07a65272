//! Requests of real clients, as the host gets them: one table per defect that hosts would refuse.

mod messages;
mod reasoning;
mod sampling;
mod tools;

use serde_json::{Value, json};
use toolgate_model::{ModelName, TurnError};

use crate::host::HostFacts;
use crate::{ClientDialect, HostRequest, Translation, UpstreamDialect};
use crate::{anthropic_messages, openai_chat, openai_responses};

/// The model's name in the client's request. The host's name must decide everything.
const ALIAS: &str = "claude-3-opus";

/// A client and a model at a host.
#[derive(Clone, Copy)]
struct Route {
    client: &'static dyn ClientDialect,
    host: &'static dyn UpstreamDialect,
    profile: &'static str,
    model: &'static str,
}

/// A Messages client and a Chat host.
const fn chat(profile: &'static str, model: &'static str) -> Route {
    Route { client: &anthropic_messages::DIALECT, host: &openai_chat::DIALECT, profile, model }
}

/// A Messages client and OpenAI's Responses host.
const fn responses(model: &'static str) -> Route {
    let client = &anthropic_messages::DIALECT;
    Route { client, host: &openai_responses::DIALECT, profile: "openai", model }
}

/// A Chat client and Anthropic.
const fn claude(model: &'static str) -> Route {
    let client = &openai_chat::DIALECT;
    Route { client, host: &anthropic_messages::DIALECT, profile: "anthropic", model }
}

impl Route {
    const fn with_responses_client(self) -> Self {
        Self { client: &openai_responses::DIALECT, ..self }
    }

    /// The smallest request of the client, with more fields.
    fn request(self, fields: &Value) -> Value {
        let hi = json!([{ "role": "user", "content": "hi" }]);
        let mut request = match self.client.id() {
            anthropic_messages::ID => json!({ "max_tokens": 9000, "messages": hi }),
            openai_chat::ID => json!({ "messages": hi }),
            _ => json!({ "input": hi }),
        };
        request["model"] = json!(ALIAS);
        for (name, value) in fields.as_object().expect("fields") {
            request[name] = value.clone();
        }
        request
    }

    /// The body that the host gets, and the places of the losses.
    fn send(self, fields: &Value) -> (Value, Vec<String>) {
        let HostRequest { body, losses, .. } = self.translate(fields).expect("the request can be written");
        let places = losses.iter().map(|loss| loss.place.clone()).collect();
        (serde_json::from_slice(&body).expect("JSON"), places)
    }

    /// The message of a request that cannot be sent.
    fn refusal(self, fields: &Value) -> String {
        self.translate(fields).expect_err("the request cannot be written").message
    }

    fn translate(self, fields: &Value) -> Result<HostRequest, TurnError> {
        let bytes = serde_json::to_vec(&self.request(fields)).expect("JSON");
        let request = self.client.read_request(&bytes).expect("a valid request").value;
        let facts = HostFacts::named(self.host.id(), self.profile).expect("a known profile");
        let (model, profile) = (ModelName::from(self.model), facts.profile(self.model));
        Translation::new(self.host).request(self.client.id(), &request, &model, &profile)
    }

    /// Checks some fields of the host's body (`null` for absent ones) and all losses.
    #[track_caller]
    fn check(self, fields: &Value, expected: &Value, lost: &[&str]) {
        let (body, losses) = self.send(fields);
        let case = format!("{} at {}: {fields}\nsent: {body}", self.model, self.profile);
        for (name, value) in expected.as_object().expect("fields") {
            assert_eq!(body.get(name).unwrap_or(&Value::Null), value, "`{name}` of {case}");
        }
        assert_eq!(losses, lost, "losses of {case}");
    }
}
