//! What is known about programs: which of them can write any file or run any program, and which only read.

use super::super::command_line::{Word, is_glob_letter};

/// When a program is safe to run with arguments that the rule does not name.
enum Safe {
    Never,
    /// Without these options. A long one may be abbreviated, a letter may be anywhere in a group of letters.
    Without(&'static str),
    /// With at most this many arguments that are not options: the next one is a file to write.
    Operands(usize),
    Git,
    Sed,
}

/// Programs that can write files or run other programs through their arguments, or take the names of files from a file,
/// and shell builtins that change what later commands do. Other programs do what the rule's author expects of them.
const PROGRAMS: &[(Safe, &str)] = &[
    (Safe::Git, "git"),
    (Safe::Sed, "sed"),
    (Safe::Operands(1), "uniq xxd"),
    (
        Safe::Without("-exec -execdir -ok -okdir -delete -rm -fprint -fprint0 -fprintf -fls -files0-from"),
        "find bfs",
    ),
    (Safe::Without("-o --output --compress-program --files0-from"), "sort shuf iconv wc du"),
    (Safe::Without("-x -X --exec --exec-batch"), "fd fdfind"),
    (Safe::Without("--pre --hostname-bin"), "rg"),
    (Safe::Without("-o -R"), "tree"),
    (Safe::Without("--pager"), "ag ack bat batcat"),
    (Safe::Without("-C --compile -f --files-from"), "file"),
    (Safe::Without("-v"), "printf"),
    // Shells and interpreters.
    (
        Safe::Never,
        "bash sh dash zsh ksh mksh rbash rksh rzsh ash fish csh tcsh yash busybox toybox pwsh powershell \
         python pypy ipython perl ruby irb node nodejs deno bun php lua luajit tclsh wish expect java jshell \
         groovy scala kotlin julia r rscript octave guile racket sbcl clojure ghci runghc ocaml erl elixir \
         awk gawk mawk nawk original-awk m4 dc osascript gdb lldb sqlite psql mysql",
    ),
    // Programs that run others.
    (
        Safe::Never,
        "ldd env xargs parallel sudo su doas runuser setpriv pkexec nohup timeout time nice ionice chrt taskset \
         setsid stdbuf unbuffer watch entr script strace ltrace perf valgrind flock chroot unshare nsenter \
         bwrap fakeroot systemd-run at batch crontab run-parts start-stop-daemon ld-linux-x86-64.so \
         ld-linux-aarch64.so tmux screen make gmake ninja cmake meson bazel just npx bunx uvx pipx direnv ssh \
         scp sftp rsync rsh nc ncat netcat socat telnet ftp docker podman nerdctl kubectl helm vagrant \
         ansible systemctl",
    ),
    // Programs that write files, and editors and pagers, which also run others.
    (
        Safe::Never,
        "ugrep ug tee dd split csplit sdiff tar bsdtar zip unzip 7z cpio pax ar rar unrar curl wget aria2c openssl gpg \
         yq patch ed ex vi vim nvim view vimdiff emacs nano pico less more most man info",
    ),
    // Shell builtins.
    (
        Safe::Never,
        ". source eval exec command builtin trap export declare typeset local readonly integer float read \
         mapfile readarray getopts let set unset shopt setopt unsetopt emulate autoload zmodload zle vared \
         sched print alias unalias hash rehash enable disable complete compgen compopt bind fc history jobs \
         wait test [ pushd popd dirs umask ulimit",
    ),
];

/// Subcommands of `git` that only read.
const GIT_READING: &str = "status diff log show blame shortlog describe rev-parse rev-list ls-files ls-tree grep \
     merge-base name-rev show-ref diff-tree diff-index diff-files";

/// Subcommands of `git` that a rule has to name. Those in neither list need an exact rule.
const GIT_CHANGING: &str = "add commit branch tag checkout switch restore reset rm mv merge stash cherry-pick revert fetch pull push \
     remote clean reflog";

/// Options of `git` and its subcommands that write a file, run a program, use another repository, or take arguments
/// from elsewhere.
const GIT_OPTIONS: &str = "--output --output-directory --exec --exec-path --ext-diff --textconv --upload-pack --receive-pack \
     --open-files-in-pager --config --config-env --extcmd --tool --git-dir --work-tree --template \
     --edit-description --stdin";

/// Programs that only read what they are given, and print it.
const READING: &str = "ls cat head tail wc grep egrep fgrep rg find stat du file diff cmp comm cut sort tr nl od hexdump \
     strings basename dirname realpath readlink md5sum sha1sum sha256sum jq echo printf pwd cd true false \
     which type tree";

/// Programs that read no files below a folder they are given, or only their names.
const NOT_DESCENDING: &str = "ls cat head tail wc find stat du file cmp cut sort tr nl basename dirname realpath \
     readlink echo printf pwd cd true false which type tree mkdir rmdir touch git";

/// Options of `grep` that make it search the current directory. The shell of Claude Code runs `ugrep` as `grep`, which
/// also reads the files in a folder without any option, and `bfs` as `find`.
const GREP_RECURSIVE: &str = "-r -R -d --recursive --dereference-recursive --directories --depth";

/// Programs that search the current directory unless told otherwise.
const SEARCHING: &str = "rg ag ack rgrep fd fdfind";

/// Builtins that change the directory, or run something that does.
const MOVING: &str = "cd pushd popd eval source . command builtin exec dirs";

/// Whether a program reads files below the folders it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descent {
    /// It does not.
    No,
    /// It may.
    Arguments,
    /// It does, and without an argument below the current directory.
    ArgumentsOrCurrent,
}

/// True if the command may write any file or run any program, judged by all its words. The first `named` words are in
/// a rule.
pub(super) fn is_open_ended(words: &[Word], named: usize) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = name_of(&program.text);
    let unversioned =
        name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
    let known = |name: &str| PROGRAMS.iter().find(|(_, names)| lists(names, name));
    let Some((safe, _)) = known(&name).or_else(|| known(unversioned)) else { return false };
    match safe {
        Safe::Never => true,
        Safe::Without(options) => has_option(arguments, options),
        Safe::Operands(most) => {
            arguments.iter().filter(|word| word.is_glob || !word.text.starts_with('-')).count() > *most
                || arguments.iter().any(|word| word.is_glob)
        }
        Safe::Git => is_open_ended_git(arguments, named),
        Safe::Sed => !is_safe_sed(arguments),
    }
}

/// True if the command only reads and prints.
pub(super) fn only_reads(words: &[Word]) -> bool {
    let Some(program) = words.first() else { return false };
    let name = name_of(&program.text);
    let is_reading_git = name == "git" && words.get(1).is_some_and(|word| lists(GIT_READING, &word.text));
    (is_reading_git || lists(READING, &name)) && !is_open_ended(words, words.len())
}

pub(super) fn descent(words: &[Word]) -> Descent {
    let Some((program, arguments)) = words.split_first() else { return Descent::No };
    let name = name_of(&program.text);
    let is_recursive = match name.as_str() {
        "grep" | "egrep" | "fgrep" => {
            has_option(arguments, GREP_RECURSIVE) || arguments.iter().any(|word| has_depth(&word.text))
        }
        "git" => arguments.first().is_some_and(|word| word.text == "grep"),
        name => lists(SEARCHING, name),
    };
    if is_recursive {
        Descent::ArgumentsOrCurrent
    } else if lists(NOT_DESCENDING, &name) {
        Descent::No
    } else {
        Descent::Arguments
    }
}

/// True if the program depends on the directory it starts in: it is in it, or runs what a repository there says.
pub(super) fn depends_on_directory(program: &str) -> bool {
    (program.contains('/') && !program.starts_with('/')) || name_of(program) == "git"
}

pub(super) fn may_change_directory(program: &str) -> bool {
    lists(MOVING, program)
}

fn name_of(program: &str) -> String {
    program.rsplit('/').next().unwrap_or_default().to_lowercase()
}

fn is_open_ended_git(arguments: &[Word], named: usize) -> bool {
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    let subcommand = subcommand.text.as_str();
    let is_known = lists(GIT_READING, subcommand) || (named > 1 && lists(GIT_CHANGING, subcommand));
    !is_known || has_option(rest, GIT_OPTIONS) || (subcommand == "grep" && has_option(rest, "-O"))
}

/// `sed -n 10,20p file`: only line numbers and commands that print, skip or stop.
fn is_safe_sed(arguments: &[Word]) -> bool {
    let is_safe_option =
        |text: &str| text[1..].chars().all(|letter| matches!(letter, 'n' | 'E' | 'r' | 's' | 'u' | 'z'));
    let is_option = |word: &&Word| word.text.starts_with('-') || may_become_option(word);
    let mut operands = arguments.iter().filter(|word| !is_option(word));
    let is_safe_script = operands.next().is_some_and(|script| {
        script.text.chars().all(|letter| letter.is_ascii_digit() || " ,$;=!pqdn".contains(letter))
    });
    is_safe_script
        && arguments.iter().filter(is_option).all(|word| !word.is_glob && is_safe_option(&word.text))
}

/// `-3` is the depth of a recursive search for `ugrep`. In `-A3` and `-m1` it is the value of an option.
fn has_depth(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    let before = letters.find(|letter: char| letter.is_ascii_digit()).map(|at| &letters[..at]);
    before.is_some_and(|before| !before.ends_with(['A', 'B', 'C', 'm', 'e', 'f']))
}

fn lists(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

fn has_option(arguments: &[Word], options: &str) -> bool {
    arguments.iter().any(|word| {
        may_become_option(word) || options.split_whitespace().any(|option| is_option(&word.text, option))
    })
}

/// A file may have the name of an option.
fn may_become_option(word: &Word) -> bool {
    word.is_glob && word.text.starts_with(|letter| letter == '-' || is_glob_letter(letter))
}

fn is_option(word: &str, option: &str) -> bool {
    if option.starts_with("--") {
        let name = word.split('=').next().unwrap_or_default();
        return name.len() > 2 && option.starts_with(name);
    }
    let is_group = !word.starts_with("--") && word.len() > 1;
    match option.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => {
            is_group && word.strip_prefix('-').is_some_and(|letters| letters.contains(letter))
        }
        _ => word == option,
    }
}
