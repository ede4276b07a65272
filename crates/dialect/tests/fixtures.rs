//! Every file under `fixtures/` is a test. `fixtures/README.md` describes the format.

mod fixtures_run;

use fixtures_run::{error, ping, reply, request, sse};

datatest_stable::harness! {
    { test = reply::check, root = "fixtures/reply", pattern = r"\.json$" },
    { test = request::check, root = "fixtures/request", pattern = r"\.json$" },
    { test = error::check, root = "fixtures/error", pattern = r"\.json$" },
    { test = ping::check, root = "fixtures/ping", pattern = r"\.json$" },
    { test = sse::check, root = "fixtures/sse", pattern = r"\.json$" },
}
