//! The JSON of offered tools, for reading.

use serde::Deserialize;
use serde::de::Deserializer;
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{Fields, JsonText, Opaque};

use super::extras::opaque;

/// An offered tool.
pub(super) enum ToolIn {
    Function { function: FunctionToolIn, extra: Fields },
    Custom { custom: CustomToolIn, extra: Fields },
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct FunctionToolIn {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<JsonText>,
    pub(super) strict: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct CustomToolIn {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) format: Option<JsonText>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Tagged<'de> for ToolIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct FunctionFields {
            function: FunctionToolIn,
            #[serde(flatten)]
            extra: Fields,
        }
        #[derive(Deserialize)]
        struct CustomFields {
            custom: CustomToolIn,
            #[serde(flatten)]
            extra: Fields,
        }
        Ok(match tag {
            // Many hosts do not require the type.
            "function" | "" => {
                let FunctionFields { function, extra } = FunctionFields::deserialize(fields)?;
                Self::Function { function, extra }
            }
            "custom" => {
                let CustomFields { custom, extra } = CustomFields::deserialize(fields)?;
                Self::Custom { custom, extra }
            }
            other => Self::Other(opaque(other, Fields::deserialize(fields)?)),
        })
    }
}

impl<'de> Deserialize<'de> for ToolIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}
