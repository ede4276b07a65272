//! Reads the parts of Toolify's `config.yaml` that have a meaning for toolgate.

use crate::config::problem::{Located, Position, ReadContext};
use crate::config::upstream::parse_base_url;

use super::yaml::{self, YamlMap};

/// Toolify's defaults.
const DEFAULT_HOST: &str = "0.0.0.0";
const DEFAULT_PORT: u32 = 8000;
const DEFAULT_RETRIES: u32 = 3;

/// The placeholders that Toolify's templates must contain.
const PROMPT_PLACEHOLDERS: [&str; 2] = ["{tools_list}", "{trigger_signal}"];
const RETRY_PLACEHOLDERS: [&str; 2] = ["{error_details}", "{original_response}"];

/// A config that can be converted.
pub(super) struct Toolify {
    pub(super) host: String,
    pub(super) port: u32,
    /// In seconds.
    pub(super) timeout: Option<u32>,
    pub(super) services: Vec<Service>,
    pub(super) keys: Vec<String>,
    pub(super) features: Features,
    /// Keys that Toolify does not document either.
    pub(super) unknown: Vec<Located<String>>,
}

/// A host.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) base_url: String,
    pub(super) api_key: String,
    pub(super) description: Option<String>,
    pub(super) models: Vec<ModelListing>,
    pub(super) default: DefaultService,
}

/// Whether a host gets the models that no service lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultService {
    Yes,
    No,
}

/// A model of a host: `NAME` or `ALIAS:NAME`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ModelListing {
    pub(super) alias: Option<String>,
    pub(super) model: String,
}

/// The features.
pub(super) struct Features {
    pub(super) function_calling: bool,
    pub(super) log_level: Option<String>,
    pub(super) convert_developer: Option<bool>,
    pub(super) prompt_template: Option<String>,
    pub(super) key_passthrough: bool,
    pub(super) model_passthrough: bool,
    /// `None` if it is not set.
    pub(super) retries: Option<u32>,
    pub(super) retry_template: Option<String>,
}

/// Reads the file and reports problems; `None` if it has no readable structure.
pub(super) fn read(text: &str, context: &mut ReadContext<'_>) -> Option<Toolify> {
    let document = yaml::parse(text, context)?;
    let root = YamlMap::of(&document, yaml::ROOT, context)?;
    let mut unknown: Vec<Located<String>> = Vec::new();
    let mut note =
        |map: &YamlMap<'_>, known: &[&str]| unknown.extend(map.unknown_keys(known).into_iter().cloned());
    note(&root, &["server", "upstream_services", "client_authentication", "features"]);

    let server = root.map("server", context)?;
    note(&server, &["host", "port", "timeout"]);
    let services = read_services(&root, &mut note, context);
    let callers = root.map("client_authentication", context)?;
    note(&callers, &["allowed_keys"]);
    let features = root.map("features", context)?;
    note(&features, &FEATURES);

    let host = server.text("host", context).map_or(DEFAULT_HOST.to_owned(), |host| host.value);
    let port = server.number("port", [1, 65_535], context).map_or(DEFAULT_PORT, |port| port.value);
    let timeout = server.number("timeout", [1, 86_400], context).map(|timeout| timeout.value);
    let keys = read_keys(&callers, context);
    let features = read_features(&features, context);
    Some(Toolify { host, port, timeout, services, keys, features, unknown })
}

fn read_services(
    root: &YamlMap<'_>,
    note: &mut impl FnMut(&YamlMap<'_>, &[&str]),
    context: &mut ReadContext<'_>,
) -> Vec<Service> {
    let items = root.list("upstream_services", context);
    if items.is_empty() {
        context.error(
            root.position(),
            "`upstream_services` is empty: add a service with name, base_url, api_key and models",
        );
    }
    let mut services: Vec<Service> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(map) = YamlMap::of(item, format!("service {}", index + 1), context) else { continue };
        note(&map, &["name", "base_url", "api_key", "models", "description", "is_default"]);
        let Some(service) = read_service(&map, context) else { continue };
        if services.iter().any(|other| other.name == service.name) {
            context.error(map.position(), format!("two services are called `{}`: rename one", service.name));
        }
        if service.default == DefaultService::Yes
            && services.iter().any(|other| other.default == DefaultService::Yes)
        {
            context.error(map.position(), "two services have `is_default: true`: only one may");
        }
        let taken = |entry: &&ModelListing| services.iter().any(|other| other.models.contains(entry));
        if let Some(twin) = service.models.iter().find(taken) {
            context.error(
                map.position(),
                format!("the model `{}` is listed by another service as well", twin.model),
            );
        }
        services.push(service);
    }
    services
}

fn read_service(map: &YamlMap<'_>, context: &mut ReadContext<'_>) -> Option<Service> {
    let name = single_line(map.required_text("name", context), context);
    let base_url = map.required_text("base_url", context);
    let api_key = single_line(map.required_text("api_key", context), context);
    let description = map.text("description", context).map(|text| text.value);
    let default = match map.flag("is_default", context) {
        Some(Located { value: true, .. }) => DefaultService::Yes,
        Some(_) | None => DefaultService::No,
    };
    let items = map.list("models", context);
    if items.is_empty() {
        context.error(map.position(), "this service has no `models`");
    }
    let models = items.iter().filter_map(|item| {
        let entry = single_line(yaml::text(item, "a model", context), context)?;
        read_listing(&entry, yaml::position(item), context)
    });
    let models = models.collect();
    let base_url = base_url.filter(|url| match parse_base_url(&url.value) {
        Ok(_) => true,
        Err(why) => {
            context.error(url.position, format!("`base_url` {why}"));
            false
        }
    });
    Some(Service { name: name?, base_url: base_url?.value, api_key: api_key?, description, models, default })
}

fn read_listing(written: &str, position: Position, context: &mut ReadContext<'_>) -> Option<ModelListing> {
    let Some((alias, model)) = written.split_once(':') else {
        return Some(ModelListing { alias: None, model: written.to_owned() });
    };
    if alias.trim().is_empty() || model.trim().is_empty() {
        context.error(
            position,
            format!("the model `{written}` must be a name, or an alias, a colon and a name"),
        );
        return None;
    }
    Some(ModelListing { alias: Some(alias.to_owned()), model: model.to_owned() })
}

/// A single line of text: names and keys contain no control characters.
fn single_line(text: Option<Located<String>>, context: &mut ReadContext<'_>) -> Option<String> {
    let text = text?;
    if text.value.chars().any(char::is_control) {
        context.error(text.position, "this must be one line of visible text");
        return None;
    }
    Some(text.value)
}

fn read_keys(map: &YamlMap<'_>, context: &mut ReadContext<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    for item in map.list("allowed_keys", context) {
        let Some(key) = yaml::text(item, "a key", context) else { continue };
        if key.value.trim().is_empty() {
            context.error(key.position, "a key must not be empty");
        } else if !keys.contains(&key.value) {
            keys.push(key.value);
        }
    }
    keys
}

const FEATURES: [&str; 9] = [
    "enable_function_calling",
    "log_level",
    "convert_developer_to_system",
    "prompt_template",
    "key_passthrough",
    "model_passthrough",
    "enable_fc_error_retry",
    "fc_error_retry_max_attempts",
    "fc_error_retry_prompt_template",
];

fn read_features(map: &YamlMap<'_>, context: &mut ReadContext<'_>) -> Features {
    let mut flag = |key: &str| map.flag(key, context).map(|flag| flag.value);
    let function_calling = flag("enable_function_calling").unwrap_or(true);
    let convert_developer = flag("convert_developer_to_system");
    let key_passthrough = flag("key_passthrough").unwrap_or(false);
    let model_passthrough = flag("model_passthrough").unwrap_or(false);
    let retry = flag("enable_fc_error_retry");
    let attempts = map.number("fc_error_retry_max_attempts", [1, 10], context).map(|count| count.value);
    let retries = retry.map(|retry| if retry { attempts.unwrap_or(DEFAULT_RETRIES) } else { 0 });
    Features {
        function_calling,
        log_level: map.text("log_level", context).map(|level| level.value),
        convert_developer,
        prompt_template: template(map, "prompt_template", &PROMPT_PLACEHOLDERS, context),
        key_passthrough,
        model_passthrough,
        retries,
        retry_template: template(map, "fc_error_retry_prompt_template", &RETRY_PLACEHOLDERS, context),
    }
}

fn template(
    map: &YamlMap<'_>,
    key: &str,
    placeholders: &[&str],
    context: &mut ReadContext<'_>,
) -> Option<String> {
    let text = map.text(key, context).filter(|text| !text.value.is_empty())?;
    if let Some(missing) = placeholders.iter().find(|placeholder| !text.value.contains(**placeholder)) {
        context.error(text.position, format!("`{key}` lacks {missing}: add it"));
    }
    Some(text.value)
}
