//! Corrects names that a model wrote slightly differently, if exactly one candidate matches (P24, P25).

/// The candidate that `name` refers to; `None` if no candidate matches or several do.
pub(crate) fn resolve<'a>(
    name: &str,
    candidates: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<&'a str> {
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let unqualified = (last != name).then_some(last);
    std::iter::once(name).chain(unqualified).find_map(|name| only_match(name, candidates.clone()))
}

fn only_match<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let normalized = normalize(name);
    if normalized.is_empty() {
        return None;
    }
    let mut matching = candidates.filter(|candidate| normalize(candidate) == normalized);
    let first = matching.next()?;
    matching.next().is_none().then_some(first)
}

/// Ignores case, dashes and underscores.
fn normalize(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_corrected_only_if_one_candidate_matches() {
        let check = |name: &str, candidates: &[&str], expect: Option<&str>| {
            assert_eq!(resolve(name, &candidates.iter().copied()), expect, "{name}");
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
