//! The requests of a storm, and the connections they go out on.

use bytes::Bytes;
use tokio::net::TcpStream;

use crate::AnyError;
use crate::load::{Shot, Volume, fire};
use crate::rows::{Exchange, rows};

/// The gateway's address, and what is sent to it.
pub(super) struct Requests {
    pub(super) address: String,
    pub(super) whole: Shot,
    pub(super) streamed: Shot,
    /// A stream that takes so long that its client can leave in the middle.
    pub(super) slow: Shot,
}

impl Requests {
    pub(super) fn to(address: &str) -> Result<Self, AnyError> {
        let rows = rows();
        let exchange = |row: usize| -> Result<Exchange, AnyError> {
            Ok(*rows.get(row).and_then(|row| row.exchanges.first()).ok_or("a row without exchanges")?)
        };
        Ok(Self {
            address: address.to_owned(),
            whole: exchange(0)?.translated(),
            streamed: exchange(1)?.translated(),
            slow: exchange(1)?.slow().translated(),
        })
    }

    /// A few good requests.
    pub(super) async fn warm_up(&self) -> Result<(), AnyError> {
        for shot in [&self.whole, &self.streamed] {
            fire(&self.address, shot, Volume { requests: 32, connections: 8 }).await?;
        }
        Ok(())
    }

    pub(super) async fn connect(&self) -> Result<TcpStream, AnyError> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A good request in bytes. `fields` are further header lines, each with its line end.
    pub(super) fn bytes(&self, shot: &Shot, fields: &str) -> Bytes {
        let Self { address, .. } = self;
        let (path, length) = (shot.dialect.path(), shot.body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{fields}content-length: {length}\r\n\r\n"
        );
        Bytes::from([head.as_bytes(), &shot.body].concat())
    }
}
