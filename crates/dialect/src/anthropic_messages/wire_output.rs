//! The JSON of the output format and the effort, for reading.

use serde::Deserialize;
use serde::de::Deserializer;
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{Fields, JsonText, Opaque};

use super::wire::opaque;

#[derive(Deserialize)]
pub(super) struct OutputConfigIn {
    pub(super) effort: Option<String>,
    pub(super) format: Option<OutputFormatIn>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

pub(super) enum OutputFormatIn {
    JsonSchema { schema: JsonText, extra: Fields },
    Other(Opaque),
}

impl<'de> Tagged<'de> for OutputFormatIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct JsonSchemaIn {
            schema: JsonText,
            #[serde(flatten)]
            extra: Fields,
        }
        if tag == "json_schema" {
            let JsonSchemaIn { schema, extra } = JsonSchemaIn::deserialize(fields)?;
            return Ok(Self::JsonSchema { schema, extra });
        }
        opaque(tag, fields).map(Self::Other)
    }
}

impl<'de> Deserialize<'de> for OutputFormatIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}
