//! Claude Code behind the gateway: the real program, in every generation at hand, thinking with a scripted model.
//!
//! `cargo xtask test` installs the programs and names them in `CLAUDE_CODE_OLDER` and `CLAUDE_CODE_CURRENT`; without
//! them the tests here fail and say so. `cargo nextest run --profile quick` leaves them out.
//!
//! `agent 14` at a test means the fourteenth of the cases that other programs of this kind got wrong, `M5` the fifth
//! of those that one of them did.

#[cfg(test)]
#[cfg(unix)]
mod ahead;
#[cfg(test)]
mod apart;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod client;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod data;
#[cfg(test)]
mod failing;
#[cfg(test)]
#[cfg(unix)]
mod faulty;
#[cfg(test)]
#[path = "../service/gate.rs"]
#[expect(dead_code, reason = "shared with the tests of other back ends, which use the rest")]
mod gate;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod own_tools;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod people;
#[cfg(test)]
mod remembering;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod wording;
