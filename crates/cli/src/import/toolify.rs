//! Toolify's `config.yaml`, as far as it means something here.

use crate::config::problem::{Place, Placed, Reading};
use crate::config::upstream::parse_base_url;

use super::yaml::{self, Map};

/// What Toolify does where nothing is said.
const USUAL_HOST: &str = "0.0.0.0";
const USUAL_PORT: u32 = 8000;
const USUAL_RETRIES: u32 = 3;

/// What its template must have a place for, as ours.
const PROMPT_PLACES: [&str; 2] = ["{tools_list}", "{trigger_signal}"];
const RETRY_PLACES: [&str; 2] = ["{error_details}", "{original_response}"];

/// A config that can be written in our words.
pub(super) struct Toolify {
    pub(super) host: String,
    pub(super) port: u32,
    /// In seconds.
    pub(super) timeout: Option<u32>,
    pub(super) services: Vec<Service>,
    pub(super) keys: Vec<String>,
    pub(super) features: Features,
    /// Keys that Toolify's documentation does not know either.
    pub(super) unknown: Vec<Placed<String>>,
}

/// A host.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) base_url: String,
    pub(super) api_key: String,
    pub(super) description: Option<String>,
    pub(super) models: Vec<Entry>,
    pub(super) default: Default,
}

/// Whether a host gets the models that nobody lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Default {
    Yes,
    No,
}

/// A model of a host: `NAME`, or `ALIAS:NAME`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) alias: Option<String>,
    pub(super) model: String,
}

/// What is switched on.
pub(super) struct Features {
    pub(super) function_calling: bool,
    pub(super) log_level: Option<String>,
    pub(super) convert_developer: Option<bool>,
    pub(super) prompt_template: Option<String>,
    pub(super) key_passthrough: bool,
    pub(super) model_passthrough: bool,
    /// None where nothing is said about it.
    pub(super) retries: Option<u32>,
    pub(super) retry_template: Option<String>,
}

/// Reads the file; problems are reported, and None is given where nothing can be made of it.
pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Option<Toolify> {
    let document = yaml::parse(text, reading)?;
    let root = Map::of(&document, yaml::ROOT, reading)?;
    let mut unknown: Vec<Placed<String>> = Vec::new();
    let mut note = |map: &Map<'_>, known: &[&str]| unknown.extend(map.others(known).into_iter().cloned());
    note(&root, &["server", "upstream_services", "client_authentication", "features"]);

    let server = root.map("server", reading)?;
    note(&server, &["host", "port", "timeout"]);
    let services = read_services(&root, &mut note, reading);
    let callers = root.map("client_authentication", reading)?;
    note(&callers, &["allowed_keys"]);
    let features = root.map("features", reading)?;
    note(&features, &FEATURES);

    let host = server.text("host", reading).map_or(USUAL_HOST.to_owned(), |host| host.value);
    let port = server.number("port", [1, 65_535], reading).map_or(USUAL_PORT, |port| port.value);
    let timeout = server.number("timeout", [1, 86_400], reading).map(|timeout| timeout.value);
    let keys = read_keys(&callers, reading);
    let features = read_features(&features, reading);
    Some(Toolify { host, port, timeout, services, keys, features, unknown })
}

fn read_services(
    root: &Map<'_>,
    note: &mut impl FnMut(&Map<'_>, &[&str]),
    reading: &mut Reading<'_>,
) -> Vec<Service> {
    let items = root.list("upstream_services", reading);
    if items.is_empty() {
        reading.error(
            root.place(),
            "`upstream_services` names no host: add one with name, base_url, api_key and models",
        );
    }
    let mut services: Vec<Service> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(map) = Map::of(item, format!("service {}", index + 1), reading) else { continue };
        note(&map, &["name", "base_url", "api_key", "models", "description", "is_default"]);
        let Some(service) = read_service(&map, reading) else { continue };
        if services.iter().any(|other| other.name == service.name) {
            reading.error(map.place(), format!("two services are called `{}`: rename one", service.name));
        }
        if service.default == Default::Yes && services.iter().any(|other| other.default == Default::Yes) {
            reading.error(map.place(), "a second service has `is_default: true`: only one can be it");
        }
        let taken = |entry: &&Entry| services.iter().any(|other| other.models.contains(entry));
        if let Some(twin) = service.models.iter().find(taken) {
            reading
                .error(map.place(), format!("the model `{}` is listed by another service too", twin.model));
        }
        services.push(service);
    }
    services
}

fn read_service(map: &Map<'_>, reading: &mut Reading<'_>) -> Option<Service> {
    let name = visible(map.needed_text("name", reading), reading);
    let base_url = map.needed_text("base_url", reading);
    let api_key = visible(map.needed_text("api_key", reading), reading);
    let description = map.text("description", reading).map(|text| text.value);
    let default = match map.flag("is_default", reading) {
        Some(Placed { value: true, .. }) => Default::Yes,
        Some(_) | None => Default::No,
    };
    let items = map.list("models", reading);
    if items.is_empty() {
        reading.error(map.place(), "this service lists no `models`");
    }
    let models = items.iter().filter_map(|item| {
        let entry = visible(yaml::text(item, "a model", reading), reading)?;
        read_entry(&entry, yaml::place(item), reading)
    });
    let models = models.collect();
    let base_url = base_url.filter(|url| match parse_base_url(&url.value) {
        Ok(_) => true,
        Err(why) => {
            reading.error(url.place, format!("`base_url` {why}"));
            false
        }
    });
    Some(Service { name: name?, base_url: base_url?.value, api_key: api_key?, description, models, default })
}

fn read_entry(written: &str, place: Place, reading: &mut Reading<'_>) -> Option<Entry> {
    let Some((alias, model)) = written.split_once(':') else {
        return Some(Entry { alias: None, model: written.to_owned() });
    };
    if alias.trim().is_empty() || model.trim().is_empty() {
        reading
            .error(place, format!("the model `{written}` must be a name, or an alias, a colon and a name"));
        return None;
    }
    Some(Entry { alias: Some(alias.to_owned()), model: model.to_owned() })
}

/// A text of one line. Our config could hold others, but no host or key is called so.
fn visible(text: Option<Placed<String>>, reading: &mut Reading<'_>) -> Option<String> {
    let text = text?;
    if text.value.chars().any(char::is_control) {
        reading.error(text.place, "this must be one line of visible text");
        return None;
    }
    Some(text.value)
}

fn read_keys(map: &Map<'_>, reading: &mut Reading<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    for item in map.list("allowed_keys", reading) {
        let Some(key) = yaml::text(item, "a key", reading) else { continue };
        if key.value.trim().is_empty() {
            reading.error(key.place, "a key must not be empty");
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

fn read_features(map: &Map<'_>, reading: &mut Reading<'_>) -> Features {
    let mut flag = |key: &str| map.flag(key, reading).map(|flag| flag.value);
    let function_calling = flag("enable_function_calling").unwrap_or(true);
    let convert_developer = flag("convert_developer_to_system");
    let key_passthrough = flag("key_passthrough").unwrap_or(false);
    let model_passthrough = flag("model_passthrough").unwrap_or(false);
    let retry = flag("enable_fc_error_retry");
    let attempts = map.number("fc_error_retry_max_attempts", [1, 10], reading).map(|count| count.value);
    let retries = retry.map(|retry| if retry { attempts.unwrap_or(USUAL_RETRIES) } else { 0 });
    Features {
        function_calling,
        log_level: map.text("log_level", reading).map(|level| level.value),
        convert_developer,
        prompt_template: template(map, "prompt_template", &PROMPT_PLACES, reading),
        key_passthrough,
        model_passthrough,
        retries,
        retry_template: template(map, "fc_error_retry_prompt_template", &RETRY_PLACES, reading),
    }
}

fn template(map: &Map<'_>, key: &str, places: &[&str], reading: &mut Reading<'_>) -> Option<String> {
    let text = map.text(key, reading).filter(|text| !text.value.is_empty())?;
    if let Some(lacking) = places.iter().find(|place| !text.value.contains(**place)) {
        reading.error(text.place, format!("`{key}` has no {lacking}: write it where that belongs"));
    }
    Some(text.value)
}
