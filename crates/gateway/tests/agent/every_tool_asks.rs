//! The gateway decides about every use of a built-in tool, also about those that the program itself takes for harmless.

use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::approver::Approver;
use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};
