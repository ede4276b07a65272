//! The service over real HTTP: a gateway in this process between a client and a scripted host.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod continuing;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod prompting;
#[cfg(test)]
mod prompting_bad_input;
#[cfg(test)]
mod prompting_cut;
#[cfg(test)]
mod prompting_hosts;
#[cfg(test)]
mod prompting_side_requests;
#[cfg(test)]
mod recording;
#[cfg(test)]
mod references;
#[cfg(test)]
mod relaying;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod responses_endpoints;
#[cfg(test)]
mod strict;
#[cfg(test)]
mod text_host;
#[cfg(test)]
mod unsupported_fields;
#[cfg(test)]
mod upstreams;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod workers;
