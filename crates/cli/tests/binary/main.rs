//! The real binary from outside: started as people start it, talked to over a socket.

mod commands;
mod demo;
mod http_client;
mod running;
mod shutdown;
