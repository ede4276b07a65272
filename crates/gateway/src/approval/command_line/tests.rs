//! Which lines are clear, and how they are split.

use proptest::prelude::*;

use super::*;

/// The words of all commands, with `/` between commands.
fn split(line: &str) -> Option<String> {
    let commands = read(line).ok()?;
    let texts = commands.iter().map(|words| {
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        words.join("|")
    });
    Some(texts.collect::<Vec<_>>().join(" / "))
}

#[test]
fn simple_commands_are_split_like_a_shell_splits_them() {
    for (line, expected) in [
        ("ls", "ls"),
        ("git  status\t-s", "git|status|-s"),
        ("'git' \"status\"", "git|status"),
        ("g''it s\"tat\"us", "git|status"),
        ("echo 'a  b' \"c  d\" e\\ f", "echo|a  b|c  d|e f"),
        ("echo '' \"\"", "echo||"),
        ("echo 'it'\\''s'", "echo|it's"),
        ("echo '$HOME `x` \\' \"\\$x \\` \\\" \\\\ \\n\"", "echo|$HOME `x` \\|$x ` \" \\ \\n"),
        ("echo \"a\nb\" 'c\nd'", "echo|a\nb|c\nd"),
        ("a && b || c; d | e\nf", "a / b / c / d / e / f"),
        ("a&&b||c;d|e", "a / b / c / d / e"),
        ("a;", "a"),
        ("a &&\n\n b", "a / b"),
        ("\n\n  a \n\n", "a"),
        ("# what follows\nls # not this", ""),
        ("# what follows\n  # and more\nls", "ls"),
        ("ls 2>&1 >/dev/null </dev/null | head", "ls / head"),
        ("ls 2> /dev/null; ls &>/dev/null", "ls / ls"),
        ("git show HEAD~1 HEAD^ a@b %1 x=y", "git|show|HEAD~1|HEAD^|a@b|%1|x=y"),
        ("echo \"so!\" {} ", ""),
        ("echo \"so!\" '{}' '!' '#' '(' '~'", "echo|so!|{}|!|#|(|~"),
        ("rm \\-r \\; \\$x \\*", "rm|-r|;|$x|*"),
        ("grep é ä/ö", "grep|é|ä/ö"),
        ("\\if x", ""),
    ] {
        assert_eq!(split(line).unwrap_or_default(), expected, "{line:?}");
    }
}

#[test]
fn a_glob_is_marked_unless_it_is_quoted() {
    for (line, expected) in [
        ("ls *.rs", true),
        ("ls a?", true),
        ("ls [ab]", true),
        ("ls '*.rs'", false),
        ("ls \\*", false),
        ("ls a", false),
    ] {
        assert_eq!(read(line).unwrap()[0][1].is_glob, expected, "{line}");
    }
}

#[test]
fn everything_else_is_unclear() {
    for line in [
        "",
        "  \n ",
        "# nothing",
        "echo $x",
        "echo \"$x\"",
        "echo $(x)",
        "echo `x`",
        "echo \"`x`\"",
        "echo $'x'",
        "echo $\"x\"",
        "echo ${x}",
        "cat <(ls)#x; touch y",
        "cat <<<x",
        "cat <<E\nE",
        "cat < x",
        "ls > x",
        "ls >> x",
        "ls >/dev/nullx",
        "ls>/dev/null",
        "ls 2>&1x",
        "ls 2>x",
        "ls >&x",
        ">/dev/null",
        ">/dev/null ls",
        "ls &",
        "ls & rm x",
        "ls |& x",
        "ls ;; x",
        "; ls",
        "ls && ; x",
        "ls &&",
        "ls |",
        "ls && # x\nrm",
        "| ls",
        "(ls)",
        "{ ls; }",
        "f() { ls; }",
        "ls {a,b}",
        "ls a{b",
        "! ls",
        "ls !x",
        "ls #x",
        "ls a#x",
        "A=1 ls",
        "A=1",
        "a[0]=1 ls",
        "'A=1' ls",
        "if ls; then x; fi",
        "for x in y; do z; done",
        "while x; do y; done",
        "case x in y) z;; esac",
        "time ls",
        "coproc ls",
        "[[ x ]]",
        "[ -f x ]",
        "((1))",
        "l* x",
        "'' x",
        "ls ~/x",
        "ls ~",
        "ls --x=~/y",
        "ls a:~/y",
        "=ls",
        "ls =x",
        "ls \\\nx",
        "ls \"a\\\nb\"",
        "ls 'x",
        "ls \"x",
        "ls \\",
        "ls\r",
        "ls 'a\rb'",
        "ls \"a\u{1b}b\"",
        "ls \0",
        "ls\u{a0}x",
        "ls \u{202e}x",
        "- ls",
        "noglob ls",
    ] {
        assert_eq!(read(line), Err(Unclear), "{line:?}");
    }
    assert_eq!(read(&"x".repeat(MAX_BYTES + 1)), Err(Unclear));
    assert_eq!(read(&"x ".repeat(MAX_WORDS + 1)), Err(Unclear));
    assert!(read(&"x ".repeat(MAX_WORDS)).is_ok());
}

proptest! {
    #[test]
    fn no_text_is_too_much_for_the_reader(line in any::<String>()) {
        for command in read(&line).unwrap_or_default() {
            prop_assert!(!command.is_empty());
        }
    }

    #[test]
    fn no_mixture_of_signs_is_too_much_for_the_reader(line in "[a-z '\"\\\\|&;<>\n\t#~=*$`(){}!]{0,40}") {
        for command in read(&line).unwrap_or_default() {
            prop_assert!(!command.is_empty());
        }
    }
}
