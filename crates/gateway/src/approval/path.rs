//! Lexical paths: `.` and `..` are resolved as text, without looking at the disk or following symbolic links.

/// A path or a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    root: PathRoot,
    segments: Vec<String>,
}

/// Where a path starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathRoot {
    /// `/`.
    Top,
    /// `~` or `~name`.
    Home(String),
    /// The working directory.
    Here,
    /// This many levels above the working directory.
    Above(usize),
}

impl Path {
    /// Parses a path without following links.
    pub(super) fn read(text: &str) -> Self {
        let (root, rest) = if let Some(rest) = text.strip_prefix('/') {
            (PathRoot::Top, rest)
        } else if text.starts_with('~') {
            let (home, rest) = text.split_once('/').unwrap_or((text, ""));
            (PathRoot::Home(home.to_owned()), rest)
        } else {
            (PathRoot::Here, text)
        };
        let mut path = Self { root, segments: Vec::new() };
        path.walk(rest.split('/'));
        path
    }

    /// The absolute path, if the working directory is known.
    pub(super) fn within(&self, workdir: Option<&Path>) -> Self {
        let (Some(workdir), PathRoot::Here | PathRoot::Above(_)) = (workdir, &self.root) else {
            return self.clone();
        };
        let mut path = workdir.clone();
        if let PathRoot::Above(levels) = self.root {
            path.walk(std::iter::repeat_n("..", levels));
        }
        path.walk(self.segments.iter().map(String::as_str));
        path
    }

    /// True for a pattern that starts with `**`.
    pub(super) fn begins_anywhere(&self) -> bool {
        self.root == PathRoot::Here && self.segments.first().is_some_and(|segment| segment == "**")
    }

    pub(super) fn root(&self) -> &PathRoot {
        &self.root
    }

    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }

    fn walk<'s>(&mut self, segments: impl Iterator<Item = &'s str>) {
        for segment in segments {
            match segment {
                "" | "." => {}
                ".." => self.go_up(),
                name => self.segments.push(name.to_owned()),
            }
        }
    }

    fn go_up(&mut self) {
        if self.segments.pop().is_some() {
            return;
        }
        match &mut self.root {
            // The parent of `/` is `/`.
            PathRoot::Top => {}
            PathRoot::Home(home) => home.push_str("/.."),
            PathRoot::Above(levels) => *levels += 1,
            PathRoot::Here => self.root = PathRoot::Above(1),
        }
    }
}
