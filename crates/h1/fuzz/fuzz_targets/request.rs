//! Any requests: whatever this project accepts means the same to hyper.
//! The first byte says whether the rest are the bytes of a connection or choices of the grammar.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_h1_fuzz::requests;

fuzz_target!(|input: &[u8]| {
    match input {
        [] => {}
        [b'g', choices @ ..] => drop(requests::check(&requests::generate(choices))),
        [_, bytes @ ..] => drop(requests::check(bytes)),
    }
});
