//! The scripted model as a program, for tests in other languages: prints its base URL and serves until its standard
//! input closes, so that it never outlives the test that started it.

use std::io::{self, Write};

use tokio::io::AsyncReadExt;
use toolgate_testkit::ScriptedModel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let model = ScriptedModel::start().await;
    writeln!(io::stdout(), "{}", model.base_url)?;
    io::stdout().flush()?;
    let mut input = tokio::io::stdin();
    while input.read(&mut [0; 256]).await? > 0 {}
    drop(model);
    Ok(())
}
