//! The parts that lines are generated from.

/// Between two commands.
pub(super) const SEPARATORS: &[&str] = &[
    "; ",
    ";",
    " && ",
    "&&",
    " || ",
    " | ",
    "|",
    " |& ",
    " & ",
    "&",
    "\n",
    "\n\n",
    " \\\n",
    " &&\\\n",
    " # bad\n",
    " #' bad\n",
    ";\n",
    "\\\n;",
];

/// Before a program.
pub(super) const ASSIGNMENTS: &[&str] = &[
    "PATH=./evil ",
    "x=1 ",
    "IFS=o ",
    "x+=1 ",
    "a[0]=1 ",
    "x=(1) ",
    "=x ",
    "x=",
    "{x}>&1 ",
    "BASH_ENV=in/f ",
    "OPTIND='a[$(bad)]' ",
];

/// Programs in another directory or with another name.
pub(super) const ELSEWHERE: &[&str] = &[
    "./run",
    "./run",
    "./ok",
    "./bad",
    "./sh -c 'ok'",
    "./bash -c ok",
    "./eval ok",
    "evil/ok",
    "OK",
    "ok=bad",
];

/// Programs started by `env`.
pub(super) const WITH_ENV: &[&str] =
    &["env ok", "env", "env x=1 ok", "env PATH=./evil ok", "env - bad", "env -i", "env -u x ok"];

/// Programs that start others.
pub(super) const STARTING: &[&str] =
    &["xargs ok", "xargs -n 1 ok", "nohup ok", "timeout 5 ok", "nice ok", "nice -n 5 ok", "setsid ok"];

/// Builtins that start others.
pub(super) const STARTING_BUILTINS: &[&str] =
    &["command ok", "command", "command -v", "exec ok", "exec", "builtin", "exec -a x ok", "time ok"];

/// Nested scripts.
pub(super) const SHELLS: &[&str] = &[
    "bash -c ok",
    "sh -c 'ok'",
    "bash -c",
    "sh -e -c",
    "bash -c -- bad",
    "bash",
    "eval",
    "eval ok",
    "eval --",
    "bash -c -x bad",
];

/// Builtins, with what they evaluate and set.
pub(super) const BUILTINS: &[&str] = &[
    "echo",
    "printf",
    "printf -v 'a[$(bad)]' x",
    "test -v 'a[$(bad)]'",
    "test",
    "read",
    "read 'a[$(bad)]'",
    "unset 'a[`bad`]'",
    "let 'a[$(bad)]'",
    "wait",
    "jobs -x bad",
    "set",
    "cd evil",
    "true",
    "break",
    "alias ok=bad",
    "hash -p ./bad ok",
    "trap bad EXIT",
    "compgen -C bad",
    "compgen -W '$(bad)'",
    "declare 'a[$(bad)]=1'",
    "mapfile -C bad -c 1 x",
    ". in/f",
    "source in/f",
    "x='a[$(bad)]'; declare -i y=x",
    "x='a[$(bad)]'; a[x]=1",
    "read x <in/f; $x",
    "export BASH_ENV=in/f; bash -c ok",
    "PS4='$(bad)'; set -x; ok",
    "shopt -s expand_aliases",
];

/// Programs that start others in unusual ways.
pub(super) const ODD_STARTING: &[&str] = &[
    "find . -name in -exec ok {} \\;",
    "find in -exec ok {} +",
    "find in -exec shut + {} \\;",
    "find in -execdir ok \\;",
    "find in",
    "env -C in sh -c 'ok >out/f'",
    "env -S 'bad'",
    "env -- x=1 bad",
    "env --ignore-environment bad",
    "xargs -I ok ok bad",
    "xargs -0 ok",
    "xargs -a in/f ok",
];

/// Words that mean something else in another position.
pub(super) const ODD_WORDS: &[&str] =
    &["#bad", "a#bad", "if", "do", "done", "then", "in", "esac", "time", "\u{a0}", "\u{3000}bad", "é"];

/// Expansions and quotes that the reader does not support.
pub(super) const NOT_FOLLOWED: &[&str] = &[
    "$'a\\'; bad'",
    "$\"a\"",
    "$((1))",
    "$((a[$(bad)]))",
    "$[1]",
    "${x:-bad}",
    "${#x}",
    "${!x}",
    "${x@P}",
    "@(a|b)",
    "$\\\n(bad)",
    "\"\\\n\"",
    "''",
    "\"\"",
];

/// Parts of quoted text.
pub(super) const HIDDEN: &[&str] = &[
    "; bad", " bad ", "& bad ", "| bad", "\nbad\n", "$(bad)", "`bad`", "\\", "\"", "'", "\\\"", "#", " ",
    "a", ">f", "\\\n", "(", ")", "}", "E", "\nE\n", "<<E", "$x", "\\\\", "$", "\\$", "\\`", "&&", ";;",
];

/// Files, and what looks like files.
pub(super) const REDIRECTIONS: &[&str] = &[
    ">/dev/null",
    "> /dev/null",
    "2>&1",
    ">&2",
    ">&-",
    "2>&1-",
    ">&--",
    "&>/dev/null",
    "&>>/dev/null",
    ">out/g",
    ">>out/g",
    ">|out/g",
    "<>out/g",
    ">& out/g",
    "</dev/null",
    "<in/f",
    "<<<a",
    "<<< 'bad'",
    ">f",
    ">out/../f",
    ">'~/f'",
    ">\"out/g\"",
    ">o\\ut/g",
    ">$x",
    ">out/*",
    ">out/g#bad",
    "># bad",
    "<&0",
    ">\\\n/dev/null",
    ">&1f",
    "> 2>/dev/null",
    ">out/{a,b}",
];

/// What lines are damaged with.
pub(super) const SIGNS: &[&str] = &[
    "'", "'", "\"", "\"", "\\", "\\", "$", "(", ")", "`", "`", "<", ">", "&", "|", ";", "\n", "{", "}", "=",
    "#", "!", "~", "*", "[", "]", "-", "1", "2", " ", "\t", "\\\n", "\\\n", "\r", "\0", "\u{a0}", "bad",
    " bad ", "\nbad\n", ",", "$(", "<(", "((", "<<", "<<-", "&>", "E",
];

/// Parts of random mixtures.
pub(super) const FRAGMENTS: &[&str] =
    &["ok", "ok ", "bad", "bad ", "; ok", " a ", "2>", "/dev/null", "x=", "E\n", "\nE\n", "in", "do", "done"];

/// Parts of mixtures that begin or end something.
pub(super) const BEGINNINGS: &[&str] = &[
    "for x in ",
    "; do ok",
    "; done",
    "if ok; then ",
    "; fi",
    "{ ",
    "; }",
    "ok; ",
    "eval ",
    "time ",
    "! ",
    "<<'E' ",
    "<<E\n",
    "$'",
    "$\"",
    "${x",
    "bash -c '",
    "env ",
    "exec ",
    "\\\\",
    "''",
    "\"\"",
];

/// The operator of a here-document and the line that ends it.
pub(super) const MARKS: &[(&str, &str)] = &[
    ("E", "E"),
    ("E", "E"),
    ("'E'", "E"),
    ("\"E\"", "E"),
    ("\\E", "E"),
    ("E''", "E"),
    ("-E", "\tE"),
    ("-'E'", "E"),
    (" E", "E"),
    (" -E", "-E"),
    ("\\\n-E", "-E"),
    ("E\\\nF", "EF"),
    ("''", ""),
    ("'E F'", "E F"),
    ("$x", "$x"),
    ("E$", "E$"),
    ("`E`", "`E`"),
    ("'a\nb'", "a\nb"),
    ("#E", "#E"),
    ("\\\nE", "E"),
];
