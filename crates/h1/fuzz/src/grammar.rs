//! Messages that are mostly valid, with a few mistakes of the kind that programs disagree about.

use std::fmt::Write;

/// One choice in this many is an odd one.
const ODD_ONE_IN: u8 = 24;

/// The data of chunks and bodies; some of it looks like framing.
const DATA: &str = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

const METHODS: Words = Words {
    usual: &["POST", "GET", "PUT", "OPTIONS", "HEAD", "M-SEARCH"],
    odd: &["CONNECT", "post", "", "P(ST", "PRI", "\u{e9}"],
};
const TARGETS: Words = Words {
    usual: &["/v1/messages", "/", "/a?b=c&d", "/%20:~!$'()*+,;=@", "/a//..//b"],
    odd: &[
        "*",
        "here:80",
        "/a#b",
        "//here/",
        "/\u{e9}",
        "/a b",
        "http://here",
        "http://user@here/",
        "HTTP://here/a",
        "http:///a",
        "/<>",
        "/`^\\|",
        "/\"{}",
        "/?\"{}",
        "/[]",
        "",
        "a/b",
        "ftp://here/",
        "http://here?a",
        "?a",
        "http://there/",
        "https://here:1/",
        "http://here/a?b",
    ],
};
const VERSIONS: Words = Words {
    usual: &["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"],
    odd: &["HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", "HTTP/1", "HTTP/0.9", ""],
};
const STATUSES: Words = Words {
    usual: &["200 OK", "404 ", "500", "429 Too Many", "204 No Content", "304 Not Modified", "200 \u{e9}"],
    odd: &[
        "101 Switching",
        "600 x",
        "099 x",
        "99",
        "2000",
        " 200",
        "200\tOK",
        "999 x",
        "200 a\0",
        "20x",
        "205 Reset",
    ],
};
const INTERIM_STATUSES: Words =
    Words { usual: &["100 Continue", "103 Early Hints"], odd: &["199", "101 Switching"] };
const SPACES: Words = Words { usual: &[" "], odd: &["  ", "\t", "", "\u{b}", "\r"] };
const LINE_ENDS: Words = Words {
    usual: &["\r\n"],
    odd: &["\n", "\r", "\n\r", "\r\r\n", "", "\r\n ", "\r\n\t", "\0\r\n", "\r\n\r\n"],
};
const COLONS: Words = Words {
    usual: &[": ", ":", ":\t ", ": \t"],
    odd: &[" :", "\t: ", "", "::", ":\r\n ", ": \0", "\u{a0}:"],
};
const HOSTS: Words = Words {
    usual: &["here", "HERE", "here:80", "[::1]:8080", ""],
    odd: &["here, there", "a b", "a/b", "user@here", "\u{e9}", "here\r\nhost: there"],
};
const LENGTH_NAMES: Words = Words {
    usual: &["content-length", "Content-Length", "CONTENT-LENGTH"],
    odd: &["content-length ", " content-length", "content_length", "content-length\0", "x"],
};
const CODING_NAMES: Words = Words {
    usual: &["transfer-encoding", "Transfer-Encoding"],
    odd: &[
        "transfer-encoding ",
        "\ttransfer-encoding",
        "transfer_encoding",
        "te",
        "x: y\r\ntransfer-encoding",
    ],
};
const CODINGS: Words = Words {
    usual: &["chunked", "Chunked", "chunked "],
    odd: &[
        "identity",
        "gzip, chunked",
        "chunked, chunked",
        "chunked,",
        ", chunked",
        "xchunked",
        "chunked;q=1",
        "\"chunked\"",
        "chunked\u{b}",
        "",
        "chunked, identity",
    ],
};
const OTHER_FIELDS: Words = Words {
    usual: &[
        "accept: */*",
        "x-empty:",
        "X-Long: a b  c\t ",
        "connection: keep-alive",
        "cookie: a=b",
        "Cookie: c=d",
        "x-bytes: \u{e9}",
        "upgrade: h2c",
        "te: trailers",
        "date: now",
        "expect: 100-continue",
        "connection: te, Foo",
    ],
    odd: &[
        "connection: close",
        "connection: keep-alive, close",
        "connection: keep-alive, \u{e9}",
        "no colon",
        ": no name",
        " folded: a",
        "a: b\r\n c",
        "a\0: b",
        "a: b\rc",
        "a: \u{7f}",
        "host: there",
        "content-length: 3",
        "content-length: 3, 3",
        "transfer-encoding: chunked",
        "connection: close\r\nconnection: keep-alive",
        "(a): b",
        "connection:\tclose",
        "connection: ,close,",
        "connection: \"close\"",
        "a\u{e9}: b",
        "upgrade: websocket",
    ],
};
const SIZE_ENDS: Words = Words {
    usual: &["", ";a=b", " ;a=\"b;\"", ";"],
    odd: &[
        " ", "\t", " 5", ";a\n", ";a\rb", ";\0", ",", "\u{b};a", "\r", "g", "\u{e9}", ";\u{e9}", "_0", "h",
    ],
};
const SIZE_STARTS: Words = Words {
    usual: &["", "0", "000"],
    odd: &["+", "-", "0x", " ", "_", "\t", "ffffffffffffffff", "10000000000000000"],
};
const LENGTH_STARTS: Words = Words {
    usual: &["", "", "0"],
    odd: &["+", "-", "0x", "1, ", "0,", "\"", "18446744073709551615", "9223372036854775807", "\u{b}"],
};
const TRAILERS: Words = Words {
    usual: &["", "x-trailer: 1\r\n", "a: b\r\nc: d\r\n"],
    odd: &[
        "content-length: 3\r\n",
        "transfer-encoding: chunked\r\n",
        "no colon\r\n",
        " folded\r\n",
        "a : b\r\n",
        "GET / HTTP/1.1\r\n",
        "a: b\n",
        "a\0: b\r\n",
        "a: \0\r\n",
        ": b\r\n",
        "a: b\rc: d\r\n",
        "\u{e9}: a\r\n",
    ],
};

struct Words {
    usual: &'static [&'static str],
    odd: &'static [&'static str],
}

/// Builds messages by choices. Without further choices everything is as plain as it can be.
pub(crate) struct Grammar<'c> {
    choices: std::slice::Iter<'c, u8>,
    /// Odd words go in as Latin-1, so that single bytes above 127 occur.
    out: String,
}

impl<'c> Grammar<'c> {
    pub(crate) fn new(choices: &'c [u8]) -> Self {
        Self { choices: choices.iter(), out: String::new() }
    }

    pub(crate) fn requests(mut self) -> Vec<u8> {
        for _ in 0..=self.below(3) {
            self.word(&METHODS);
            self.word(&SPACES);
            self.word(&TARGETS);
            self.word(&SPACES);
            self.word(&VERSIONS);
            self.word(&LINE_ENDS);
            self.field("host", &HOSTS);
            self.fields_and_body();
        }
        self.damaged()
    }

    pub(crate) fn responses(mut self) -> Vec<u8> {
        for _ in 0..self.below(3) {
            self.status_line(&INTERIM_STATUSES);
            self.other_fields();
            self.word(&LINE_ENDS);
        }
        self.status_line(&STATUSES);
        self.fields_and_body();
        if self.below(6) == 5 {
            self.status_line(&STATUSES);
            self.fields_and_body();
        }
        self.damaged()
    }

    fn status_line(&mut self, statuses: &Words) {
        self.word(&VERSIONS);
        self.word(&SPACES);
        self.word(statuses);
        self.word(&LINE_ENDS);
    }

    fn fields_and_body(&mut self) {
        let length = self.below(DATA.len() + 1);
        let framing = self.below(4);
        self.other_fields();
        if framing == 1 {
            self.word(&LENGTH_NAMES);
            self.word(&COLONS);
            self.word(&LENGTH_STARTS);
            self.push_formatted(format_args!("{length}"));
            self.word(&LINE_ENDS);
        }
        if framing >= 2 {
            self.word(&CODING_NAMES);
            self.word(&COLONS);
            self.word(&CODINGS);
            self.word(&LINE_ENDS);
        }
        self.other_fields();
        self.word(&LINE_ENDS);
        match framing {
            0 => {}
            1 => self.out.push_str(&DATA[..length]),
            _ => self.chunks(),
        }
    }

    fn chunks(&mut self) {
        for _ in 0..self.below(4) {
            let length = 1 + self.below(DATA.len());
            self.word(&SIZE_STARTS);
            self.push_formatted(format_args!("{length:x}"));
            self.word(&SIZE_ENDS);
            self.word(&LINE_ENDS);
            self.out.push_str(&DATA[..length]);
            self.word(&LINE_ENDS);
        }
        self.word(&SIZE_STARTS);
        self.out.push('0');
        self.word(&SIZE_ENDS);
        self.word(&LINE_ENDS);
        self.word(&TRAILERS);
        self.word(&LINE_ENDS);
    }

    fn other_fields(&mut self) {
        for _ in 0..self.below(3) {
            self.word(&OTHER_FIELDS);
            self.word(&LINE_ENDS);
        }
    }

    fn field(&mut self, name: &str, values: &Words) {
        self.out.push_str(name);
        self.word(&COLONS);
        self.word(values);
        self.word(&LINE_ENDS);
    }

    /// The bytes; once in a while one of them is changed, left out or doubled.
    fn damaged(mut self) -> Vec<u8> {
        let damage = self.below(24);
        let (at, byte) = (self.below(256) * 256 + self.below(256), self.choice());
        let mut bytes: Vec<u8> =
            self.out.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
        let at = at % bytes.len().max(1);
        match damage {
            1 => bytes[at] = byte,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, byte),
            4 => bytes.truncate(at),
            _ => {}
        }
        bytes
    }

    fn word(&mut self, words: &Words) {
        let from = if self.choice() % ODD_ONE_IN == ODD_ONE_IN - 1 { words.odd } else { words.usual };
        // One way to write something needs no choice.
        let word = if from.len() == 1 { from[0] } else { from[self.below(from.len())] };
        self.out.push_str(word);
    }

    fn push_formatted(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).ok();
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.choice()) % bound
    }

    fn choice(&mut self) -> u8 {
        self.choices.next().copied().unwrap_or(0)
    }
}
