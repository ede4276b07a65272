//! `sandbox` of `[agents.NAME]`: what an agent may reach.

use std::path::{Path, PathBuf};

use toml::de::DeValue;
use toolgate_backend::config::{Connect, SandboxConfig, SandboxMode};

use super::problem::{Located, ReadContext};
use super::section::{Field, ListForm, Section};

const KEY: &str = "sandbox";

/// Reads `sandbox` of an agent's section.
pub(crate) fn read(section: &Section<'_>, context: &mut ReadContext<'_>) -> SandboxConfig {
    let Some(field) = section.fields().iter().find(|field| field.key == KEY) else {
        return SandboxConfig::default();
    };
    match field.value {
        DeValue::Boolean(true) => SandboxConfig::default(),
        DeValue::Boolean(false) => with_mode(SandboxMode::Off),
        DeValue::String(text) if text == "required" => with_mode(SandboxMode::Required),
        DeValue::Table(_) => {
            let table = section.table(KEY, context);
            table.map_or_else(SandboxConfig::default, |table| read_table(&table, context))
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_) => {
            let wanted = "`sandbox` must be true, false, \"required\" or a table, as in { connect = [443] }";
            context.error(field.position, wanted);
            SandboxConfig::default()
        }
    }
}

fn with_mode(mode: SandboxMode) -> SandboxConfig {
    SandboxConfig { mode, ..SandboxConfig::default() }
}

fn read_table(table: &Section<'_>, context: &mut ReadContext<'_>) -> SandboxConfig {
    table.expect_keys(&["read", "write", "connect", "required"], context);
    let is_required = table.flag("required", context).is_some_and(|required| required.value);
    let connect = table.fields().iter().find(|field| field.key == "connect");
    SandboxConfig {
        mode: if is_required { SandboxMode::Required } else { SandboxMode::default() },
        read: read_paths(table, "read", context),
        write: read_paths(table, "write", context),
        connect: connect.map_or_else(Connect::default, |field| read_connect(field, context)),
    }
}

fn read_paths(table: &Section<'_>, key: &str, context: &mut ReadContext<'_>) -> Vec<PathBuf> {
    let written = table.texts(key, ListForm::Many, context).unwrap_or_default();
    written.iter().filter_map(|path| read_path(key, path, context)).collect()
}

fn read_path(key: &str, written: &Located<String>, context: &mut ReadContext<'_>) -> Option<PathBuf> {
    if written.value.is_empty() {
        context.error(written.position, format!("`{key}` contains an empty path: remove it"));
        return None;
    }
    let Some(path) = expand(&written.value, context) else {
        let problem = format!("`{key}`: there is no home directory for {}: set HOME", written.value);
        context.error(written.position, problem);
        return None;
    };
    if !path.exists() {
        let problem =
            format!("`{key}`: there is nothing at {}: create it, or remove it from the list", path.display());
        context.warning(written.position, problem);
    }
    Some(path)
}

/// Resolves `~` to the operator's home directory, and other relative paths to the folder of the config file.
fn expand(written: &str, context: &ReadContext<'_>) -> Option<PathBuf> {
    let Ok(below_home) = Path::new(written).strip_prefix("~") else {
        return Some(context.relative_to_file(written));
    };
    Some(context.environment().home_folder()?.join(below_home))
}

fn read_connect(field: &Field<'_>, context: &mut ReadContext<'_>) -> Connect {
    const WANTED: &str = "`connect` must be a list of TCP ports from 1 to 65535, as in [443], or \"any\"";
    let ports = match field.value {
        DeValue::String(text) if text == "any" => return Connect::Any,
        DeValue::Array(items) => {
            items.iter().map(|item| read_port(item.get_ref())).collect::<Option<Vec<u16>>>()
        }
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Table(_) => None,
    };
    if ports.is_none() {
        context.error(field.position, WANTED);
    }
    Connect::Ports(ports.unwrap_or_default())
}

fn read_port(item: &DeValue<'_>) -> Option<u16> {
    let digits = item.as_integer()?;
    u16::from_str_radix(digits.as_str(), digits.radix()).ok().filter(|port| *port > 0)
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it records a message")]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::tests;
    use super::*;

    const AGENT: &str = "[models.m]\nagent = \"a\"\n[agents.a]\ncommand = \"/bin/sh\"\n";

    #[track_caller]
    fn check(setting: &str, expected: &SandboxConfig) {
        let folder = tempfile::tempdir().unwrap();
        let loaded = tests::load_in(folder.path(), &format!("{AGENT}{setting}"));
        let Ok(loaded) = loaded else { panic!("{setting} has errors") };
        assert_eq!(loaded.config.backend.agents[0].sandbox, *expected, "{setting}");
    }

    #[track_caller]
    fn check_problems(setting: &str, expected: &Expect) {
        tests::check(&format!("{AGENT}{setting}"), expected);
    }

    #[test]
    fn a_sandbox_is_on_unless_it_is_turned_off() {
        check("", &SandboxConfig::default());
        check("sandbox = true", &SandboxConfig::default());
        check("sandbox = false", &with_mode(SandboxMode::Off));
        check("sandbox = \"required\"", &with_mode(SandboxMode::Required));
        check("sandbox = {}", &SandboxConfig::default());
        check("sandbox = { required = true }", &with_mode(SandboxMode::Required));
        check("sandbox = { required = false }", &SandboxConfig::default());
    }

    #[test]
    fn folders_and_ports_are_opened_by_name() {
        let open = SandboxConfig {
            mode: SandboxMode::BestEffort,
            read: vec!["/usr".into(), "/home/me".into(), "/home/me/.cargo".into()],
            write: vec!["/tmp".into()],
            connect: Connect::Ports(vec![443, 80]),
        };
        check(
            "sandbox = { read = [\"/usr\", \"~\", \"~/.cargo\"], write = [\"/tmp\"], connect = [443, 0x50] }",
            &open,
        );
        check(
            "[agents.a.sandbox]\nconnect = \"any\"",
            &SandboxConfig { connect: Connect::Any, ..SandboxConfig::default() },
        );
        check("sandbox = { connect = [] }", &SandboxConfig::default());
    }

    #[test]
    fn a_relative_path_is_relative_to_the_config_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{AGENT}sandbox = {{ read = [\"tools\", \"~file\"] }}");
        let Ok(loaded) = tests::load_in(folder.path(), &text) else { panic!("the config has errors") };
        let expected = [folder.path().join("tools"), folder.path().join("~file")];
        assert_eq!(loaded.config.backend.agents[0].sandbox.read, expected);
    }

    #[test]
    fn mistakes_are_reported() {
        check_problems(
            "sandbox = \"on\"",
            &expect![[r#"
            toolgate.toml:5:1: `sandbox` must be true, false, "required" or a table, as in { connect = [443] }
            1 error: nothing was started
        "#]],
        );
        check_problems(
            "sandbox = 1",
            &expect![[r#"
            toolgate.toml:5:1: `sandbox` must be true, false, "required" or a table, as in { connect = [443] }
            1 error: nothing was started
        "#]],
        );
        check_problems(
            "sandbox = { raed = [] }",
            &expect![[r#"
            toolgate.toml:5:13: unknown key `raed` in [agents.a.sandbox]; did you mean `read`?
            1 error: nothing was started
        "#]],
        );
        check_problems(
            "sandbox = { read = \"/usr\" }",
            &expect![[r#"
            toolgate.toml:5:20: `read` must be a list of strings, not a string
            1 error: nothing was started
        "#]],
        );
        check_problems(
            "sandbox = { read = [\"\"] }",
            &expect![[r#"
            toolgate.toml:5:21: `read` contains an empty path: remove it
            1 error: nothing was started
        "#]],
        );
        check_problems(
            "sandbox = { write = [\"/no/such/folder\"] }",
            &expect![[r#"
            toolgate.toml:5:22: warning: `write`: there is nothing at /no/such/folder: create it, or remove it from the list
        "#]],
        );
        let expected = expect![[r#"
            toolgate.toml:5:13: `connect` must be a list of TCP ports from 1 to 65535, as in [443], or "any"
            1 error: nothing was started
        "#]];
        for connect in ["443", "\"all\"", "[0]", "[65536]", "[\"443\"]", "[-1]", "[443.0]"] {
            check_problems(&format!("sandbox = {{ connect = {connect} }}"), &expected);
        }
    }
}
