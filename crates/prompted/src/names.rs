//! Names that a model wrote a little differently: matched when exactly one candidate is meant (P24, P25).

/// The only candidate that `name` can mean; `None` where there is none or more than one.
pub(crate) fn drifted<'a>(
    name: &str,
    candidates: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<&'a str> {
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let unqualified = (last != name).then_some(last);
    std::iter::once(name).chain(unqualified).find_map(|name| only_match(name, candidates.clone()))
}

fn only_match<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = normal(name);
    if wanted.is_empty() {
        return None;
    }
    let mut matching = candidates.filter(|candidate| normal(candidate) == wanted);
    let first = matching.next()?;
    matching.next().is_none().then_some(first)
}

/// Case, dashes and underscores are what drifts.
fn normal(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_corrected_only_when_one_candidate_is_meant() {
        let check = |name: &str, candidates: &[&str], expect: Option<&str>| {
            assert_eq!(drifted(name, &candidates.iter().copied()), expect, "{name}");
        };
        check("bash", &["Bash", "Read"], Some("Bash")); // P24
        check("functions.Bash", &["Bash"], Some("Bash")); // P24
        check("functions:read_file", &["ReadFile"], Some("ReadFile"));
        check("filePath", &["file_path", "content"], Some("file_path")); // P25
        check("READ", &["Read", "re_ad"], None);
        check("rm", &["Bash"], None);
        check("--", &["__"], None);
    }
}
