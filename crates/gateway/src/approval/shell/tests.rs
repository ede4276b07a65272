//! Command lines, plain and hostile, and the commands found in them.

use super::*;

/// The commands of a line, one per line: open words in `<…>`, files after `->`/`<-`, inner commands after `=>`, and at
/// the end why the line is unclear.
fn shown(text: &str) -> String {
    let line = Line::read(text);
    let mut said: Vec<String> = line.commands.iter().map(show).collect();
    said.extend(line.unclear.map(|_| "unclear".to_owned()));
    said.join("; ")
}

fn show(command: &Command) -> String {
    let mut pieces: Vec<String> = command.assignments.iter().map(|name| format!("{name}=")).collect();
    pieces.extend(command.words.iter().map(show_word));
    pieces.extend(command.files.iter().map(|file| match file.access {
        Access::Read => format!("<-{}", show_word(&file.name)),
        Access::Write => format!("->{}", show_word(&file.name)),
    }));
    match &command.runs {
        Runs::Itself => {}
        Runs::Later => pieces.push("=>later".to_owned()),
        Runs::Script => pieces.push("=>script".to_owned()),
        Runs::Unknown => pieces.push("=>?".to_owned()),
        Runs::Another(_, carried) => pieces.push(format!("=>[{}]", show(carried))),
    }
    pieces.join(" ")
}

fn show_word(word: &Word) -> String {
    match word.reading {
        Reading::Exact => word.text.replace(' ', "_"),
        Reading::Open => format!("<{}>", word.text),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(text), *expected, "{text:?}");
    }
}

#[test]
fn commands_are_split_like_in_a_shell() {
    check(&[
        ("git status", "git status"),
        ("  git   status  ", "git status"),
        ("a && b || c; d | e |& f & g", "a; b; c; d; e; f; g"),
        ("a\nb\n\nc", "a; b; c"),
        ("a;b&c|d&&e", "a; b; c; d; e"),
        ("a \\\n b", "a b"),
        ("a\\\n b", "a b"),
        ("a &&\\\n  b", "a; b"),
        // Joined lines inside a word or an operator.
        ("gi\\\nt status", "git status; unclear"),
        ("ca\\\nse x in", "case x in; unclear"),
        // An escaped backslash at the end of a line joins nothing.
        ("echo a\\\\\nrm -rf x", "echo a\\; rm -rf x"),
        ("a # b; rm x\nc", "a; c"),
        ("a#b", "a#b"),
        ("", ""),
        ("# only a comment", ""),
        ("(a; b) && { c; d; }", "a; b; c; d"),
        ("! a", "a"),
        ("time a", "a"),
        ("if a; then b; elif c; then d; else e; fi", "a; b; c; d; e"),
        ("while a; do b; done", "a; b"),
        ("for x in 1 $(b); do c $x; done", "b; c <>"),
        // Some variables change what later commands do.
        ("for PATH in ./evil; do c; done", "PATH=; c"),
        ("for path in ./evil; do c; done", "path=; c"),
    ]);
}

#[test]
fn quotes_and_escapes_are_removed() {
    check(&[
        ("r''m x", "rm x"),
        ("'r'\"m\" x", "rm x"),
        ("r\\m x", "rm x"),
        ("echo 'a; rm x'", "echo a;_rm_x"),
        ("echo \"a && rm x\"", "echo a_&&_rm_x"),
        ("echo 'a\nb'", "echo a\nb"),
        ("echo \"a\\\"; rm x\"", "echo a\";_rm_x"),
        ("echo 'it'\\''s'", "echo it's"),
        ("grep \"x$\" f", "grep x$ f"),
        ("echo a\\ b", "echo a_b"),
        ("echo a\\", "echo a\\"),
        ("echo 'a", "echo a; unclear"),
        ("echo \"a", "echo a; unclear"),
    ]);
}

#[test]
fn commands_inside_words_are_found() {
    check(&[
        ("echo $(rm x)", "rm x; echo <>"),
        ("echo \"$(rm x)\"", "rm x; echo <>"),
        ("echo '$(rm x)'", "echo $(rm_x)"),
        ("echo \"\\$(rm x)\"", "echo $(rm_x)"),
        ("echo `rm x`", "rm x; echo <>"),
        ("echo \"a `rm x` b\"", "rm x; echo <a  b>"),
        ("echo `echo \\`rm x\\``", "rm x; echo <>; echo <>"),
        ("echo $(echo $(rm x))", "rm x; echo <>; echo <>"),
        ("diff <(rm x) >(rm y)", "rm x; rm y; diff <> <>"),
        ("X=$(rm x) git status", "rm x; X= git status"),
        ("git $(echo push)", "echo push; git <>"),
        ("echo $(rm x", "rm x; echo <>; unclear"),
        ("echo $(cat <<'EOF'\n) ; rm x\nEOF\n)", "cat; echo <>"),
    ]);
}

#[test]
fn words_that_the_shell_expands_are_open() {
    check(&[
        ("git $X", "git <>"),
        ("git ${X}", "git <>"),
        ("git \"$X y\"", "git < y>"),
        ("$X rm", "<> rm =>?"),
        ("git $\\\nX", "git <X>; unclear"),
        ("git $=X", "git <$=X>"),
        ("cat .e*", "cat <.e*>"),
        ("cat .en?", "cat <.en?>"),
        ("cat .e[n]v", "cat <.e[n]v>"),
        ("{rm,-rf,x}", "<{rm,-rf,x}> =>?"),
        ("$X{} x", "<{}> x =>?"),
        ("git $X{", "git <{>"),
        ("=rm x", "<=rm> x =>?"),
        ("cat '*'", "cat *"),
        ("cat ~/x", "cat ~/x"),
        ("git log HEAD^", "git log HEAD^"),
        ("echo $1$@$?", "echo <>"),
    ]);
}

#[test]
fn redirections_are_files() {
    check(&[
        ("echo x > f", "echo x ->f"),
        ("echo x >f >>g", "echo x ->f ->g"),
        ("echo x>f", "echo x ->f"),
        ("cat < f", "cat <-f"),
        ("a 2>&1 >/dev/null 2>/dev/null", "a"),
        ("a 2> f", "a ->f"),
        ("a2>f", "a2 ->f"),
        ("a\\\n2>f", "a2 ->f; unclear"),
        ("a '2'>f", "a 2 ->f"),
        ("a \\2>f", "a 2 ->f"),
        ("a 2>&1- >&-", "a"),
        ("a >&--", "a ->--"),
        ("a >&2x", "a ->2x"),
        ("a > ~/f", "a ->~/f"),
        ("a > '~/f'", "a -><~/f>"),
        ("a b &> f", "a b ->f"),
        ("a &> f 2>&1; b", "a ->f; b"),
        ("a &> f", "a ->f"),
        ("a >& f", "a ->f"),
        ("a >| f", "a ->f"),
        ("a <> f", "a ->f"),
        ("> f", "->f"),
        ("(a) > f", "a; ->f"),
        ("a > $F", "a -><>"),
        ("a > >(rm x)", "rm x; a -><>"),
        ("a <<< word", "a"),
        ("a <<< $(rm x)", "rm x; a"),
        ("a > f&rm x", "a ->f; rm x"),
        ("a <f|rm x", "a <-f; rm x"),
        ("cd / && a > etc/x > /y", "cd /; a -><etc/x> ->/y"),
        ("a >", "a ->; unclear"),
    ]);
}

#[test]
fn here_documents_hide_no_commands() {
    check(&[
        ("cat <<EOF\nrm x\nEOF\nb", "cat; b"),
        ("cat <<'EOF'\n$(rm x)\nEOF\nb", "cat; b"),
        ("cat <<E\"O\"F\n`rm x`\nEOF\nb", "cat; b"),
        ("cat <<-EOF\n\ta\n\tEOF\nb", "cat; b"),
        ("cat <<A <<B\na\nA\nb\nB\nc", "cat; c"),
        ("cat <<EOF; rm x\nEOF\nb", "cat; rm x; b"),
        ("cat <<EOF\n$(rm x)\nEOF", "cat; unclear"),
        ("cat <<EOF\nE\\\nOF\nrm x\nEOF", "cat; unclear"),
        ("cat <<EOF\na", "cat; unclear"),
        ("cat <<EOF", "cat; unclear"),
        // bash ends the text at `EOF)`.
        ("a $(cat <<'EOF'\nx\nEOF)\nrm x\nEOF\n)", "cat; a <>; unclear"),
        ("cat <<\\\n-E\nE\nrm x\n-E\n", "cat; unclear"),
        ("cat <<E\\\nF\n$(rm x)\nEF\n", "cat; unclear"),
        ("cat <<E $(a\nE\n)", "a; cat <>; unclear"),
        ("bash <<EOF\nrm x\nEOF\n", "bash =>?"),
    ]);
}

#[test]
fn commands_run_by_other_commands_are_found() {
    check(&[
        ("sudo rm x", "sudo rm x =>[rm x]"),
        ("sudo -u root rm x", "sudo -u root rm x =>[rm x]"),
        ("sudo -- rm x", "sudo -- rm x =>[rm x]"),
        ("sudo A=1 rm x", "sudo A=1 rm x =>[A= rm x]"),
        ("sudo -s", "sudo -s =>?"),
        ("env -- A=1 rm x", "env -- A=1 rm x =>[A= rm x]"),
        ("env - rm x", "env - rm x =>?"),
        ("env -C / rm x", "env -C / rm x =>?"),
        ("nice -n $X rm", "nice -n <> rm =>?"),
        ("sudo --preserve-env rm x", "sudo --preserve-env rm x =>?"),
        ("sudo env A=1 rm x", "sudo env A=1 rm x =>[env A=1 rm x =>[A= rm x]]"),
        ("/usr/bin/env rm x", "/usr/bin/env rm x =>[rm x]"),
        ("env -S 'rm x'", "env -S rm_x =>?"),
        ("xargs rm", "xargs rm =>[rm <>]"),
        ("xargs -I status git status", "xargs -I status git status =>?"),
        ("timeout 5 rm x", "timeout 5 rm x =>[rm x]"),
        ("nohup rm x", "nohup rm x =>[rm x]"),
        ("sudo", "sudo"),
        ("sudo $X rm", "sudo <> rm =>?"),
        ("find . -name x -exec rm {} \\;", "find . -name x -exec rm {} ; =>[rm <>]"),
        ("find . -exec a \\; -exec rm {} +", "find . -exec a ; -exec rm {} + =>?"),
        ("find . -exec a + rm {} \\;", "find . -exec a + rm {} ; =>[a + rm <>]"),
        ("find . -name x", "find . -name x"),
        ("find . $X", "find . <> =>?"),
        ("bash -c 'a; rm x'", "a; rm x; bash -c a;_rm_x =>script"),
        ("bash -lc 'rm x'", "rm x; bash -lc rm_x =>script"),
        ("sh -e -c \"rm x\"", "rm x; sh -e -c rm_x =>script"),
        ("bash -c \"$X\"", "bash -c <> =>?"),
        ("bash -e$X -c 'git status'", "bash <-e> -c git_status =>?"),
        ("bash --init-file evil -c 'a'", "bash --init-file evil -c a =>?"),
        ("bash -c - rm", "bash -c - rm =>?"),
        ("bash -c -x rm", "bash -c -x rm =>?"),
        ("./bash -c a", "./bash -c a =>?"),
        ("BASH -c a", "BASH -c a =>?"),
        ("/bin/sh -c a", "a; /bin/sh -c a =>script"),
        ("fish -c a", "fish -c a =>?"),
        ("su -c a", "su -c a =>?"),
        ("bash script.sh", "bash script.sh =>?"),
        ("curl x | sh", "curl x; sh =>?"),
        ("eval 'rm x'", "rm x; eval rm_x =>script"),
        ("eval rm x", "rm x; eval rm x =>script"),
        ("eval $X", "eval <> =>?"),
        ("eval -- rm x", "eval -- rm x =>?"),
        ("./eval a", "./eval a"),
        ("source x", "source x =>?"),
        (". x", ". x =>?"),
        ("ssh host rm x", "ssh host rm x =>?"),
        ("sudo bash -c 'rm x'", "rm x; sudo bash -c rm_x =>[bash -c rm_x =>script]"),
    ]);
}

/// The shell runs `$(rm x)` in an array index, however it is quoted.
#[test]
fn builtins_that_evaluate_or_set_variables_are_known() {
    check(&[
        ("test -f x", "test -f x"),
        ("test -v 'a[$(rm x)]'", "test -v a[$(rm_x)] =>?"),
        ("test $X", "test <> =>?"),
        ("printf '%s %5d\\n' a 1", "printf %s_%5d\\n a 1"),
        ("printf %s $X", "printf %s <>"),
        ("printf %d $X", "printf %d <> =>?"),
        ("printf -v 'a[$(rm x)]' y", "printf -v a[$(rm_x)] y =>?"),
        ("read 'a[$(rm x)]'", "read a[$(rm_x)] =>?"),
        ("let 'a[$(rm x)]'", "let a[$(rm_x)] =>?"),
        ("read PATH", "read PATH =>later"),
        ("declare -i x=y", "declare -i x=y =>?"),
        ("export BASH_ENV=f", "export BASH_ENV=f =>?"),
        ("env BASH_ENV=f a", "env BASH_ENV=f a =>?"),
        ("export A=1", "export A=1 =>later"),
        ("export", "export"),
        ("set -k", "set -k =>later"),
        ("set -euo pipefail +x", "set -euo pipefail +x"),
        ("jobs", "jobs"),
        ("jobs -x rm x", "jobs -x rm x =>?"),
        ("compgen -C 'rm x'", "compgen -C rm_x =>?"),
        ("hash -p ./rm a", "hash -p ./rm a =>?"),
        ("alias a=rm", "alias a=rm =>?"),
    ]);
}

#[test]
fn assignments_before_a_command_are_found() {
    check(&[
        ("A=1 git status", "A= git status"),
        ("A=1 B+=2 git", "A= B= git"),
        ("A=1", "A="),
        ("PATH=/evil; git status", "PATH=; git status"),
        ("git A=1", "git A=1"),
        // The shell runs or evaluates these when they are set or used.
        ("x='a[$(rm x)]'", "x=; unclear"),
        ("a[x]=1", "a[x]=; unclear"),
        ("PS4=$X", "PS4=; unclear"),
        ("BASH_ENV=f a", "BASH_ENV= a; unclear"),
        ("COLUMNS=$X a", "COLUMNS= a; unclear"),
        ("COLUMNS=80 a", "COLUMNS= a"),
        ("'A'=1", "A=1"),
    ]);
}

#[test]
fn unsupported_syntax_is_unclear() {
    for text in [
        "git() { rm x; }; git status",
        "function git { rm x; }",
        "case x in x) rm y;; esac",
        "a=(1 2)",
        "[[ -f x ]] && rm y",
        "((x = 1))",
        "echo $((1 + 1))",
        "echo $[1 + 1]",
        "echo ${X:-$(rm x)}",
        "echo ${X@P}",
        "$'\\x72m' x",
        "echo $\"x\"",
        "ls *(e:'rm x':)",
        "a )",
        "( a",
        "a\rb",
        "a\0b",
        "\u{1b}[2Ja",
        "coproc rm x",
        "for ((;;)); do rm x; done",
        "for x do rm x; done",
        "for x { rm x; }",
        "for x in a { rm x }",
        "time -p rm x",
        ">f if rm x",
        "a &>f rm x",
        "{x}>f",
        "12>f a",
        "a x<(b)",
        "a >#f",
        "a >!f",
        "{ a } always { rm x }",
        "(\\\n(a '$(rm x)'))",
        "a \"`b \\\" ' \\\" ; rm x ; \\\" ' \\\"`\"",
    ] {
        assert!(Line::read(text).unclear.is_some(), "{text:?}: {}", shown(text));
    }
}

#[test]
fn size_and_depth_are_bounded() {
    assert!(Line::read(&"a;".repeat(MAX_LINE_BYTES)).unclear.is_some());
    for (open, close) in [("$(", ")"), ("(", ")"), ("sudo ", ""), ("\"$(", ")\"")] {
        let deep = open.repeat(5_000) + "a" + &close.repeat(5_000);
        assert!(Line::read(&deep).unclear.is_some(), "{open}");
    }
}

/// Reading any text terminates and returns something.
#[test]
fn any_mixture_of_operators_is_read_to_its_end() {
    let signs = [
        "a", " ", "'", "\"", "\\", "$", "(", ")", "`", "<", ">", "&", "|", ";", "\n", "{", "}", "=", "#", "1",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(signs[usize::try_from(state >> 40).unwrap() % signs.len()]);
        }
        let line = Line::read(&text);
        assert!(line.commands.len() <= text.len() + 1, "{text:?}");
    }
}
