//! The output format.

use toolgate_model::{DialectId, JsonText, Losses, OutputFormat, Part, TurnRequest};

use super::super::{HostProfile, JsonOutput};
use super::schema;

/// Replaces a format that the host does not enforce by an instruction.
pub(super) fn fit(request: &mut TurnRequest, profile: &HostProfile, dialect: DialectId, losses: &mut Losses) {
    let is_excluded = !profile.tools_with_format && !request.tools.is_empty();
    let json_output = if is_excluded { JsonOutput::None } else { profile.json_output };
    let instruction = match (&mut request.output, json_output) {
        (OutputFormat::Text, _) | (OutputFormat::JsonObject, JsonOutput::Schema | JsonOutput::Object) => {
            return;
        }
        (OutputFormat::JsonSchema(format), JsonOutput::Schema | JsonOutput::SchemaOnly) => {
            schema::fit_output(format, profile, dialect, losses);
            return;
        }
        (OutputFormat::JsonObject, JsonOutput::SchemaOnly | JsonOutput::None) => {
            losses.add("response_format", "the host cannot enforce it: the model is instructed instead");
            request.output = OutputFormat::Text;
            "Reply with one JSON object and nothing else.".to_owned()
        }
        (OutputFormat::JsonSchema(format), JsonOutput::Object | JsonOutput::None) => {
            losses
                .add("response_format", "the host cannot enforce a schema: the model is instructed instead");
            let instruction = schema_instruction(&format.schema);
            request.output = match json_output {
                JsonOutput::Object => OutputFormat::JsonObject,
                JsonOutput::Schema | JsonOutput::SchemaOnly | JsonOutput::None => OutputFormat::Text,
            };
            instruction
        }
    };
    request.system.push(Part::text(instruction));
}

fn schema_instruction(schema: &JsonText) -> String {
    format!(
        "Reply with one JSON object that follows this JSON Schema, and nothing else:\n{}",
        schema.as_str()
    )
}
