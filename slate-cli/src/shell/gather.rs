use super::scanner::Scanner;

/// Gathers lines until they form a command. A command ends with the line that closes all brackets and quotes.
#[derive(Debug, Default)]
pub(super) struct Gather {
    text: String,
    scanner: Scanner,
}

impl Gather {
    /// Adds a line. Returns the command that it ends; `None` if the command continues.
    pub(super) fn add(&mut self, line: &str) -> Option<String> {
        self.text.push_str(line);
        self.text.push('\n');
        for character in line.chars().chain(['\n']) {
            self.scanner.feed(character);
        }
        if self.scanner.is_open() {
            return None;
        }
        Some(std::mem::take(self).text)
    }

    /// Returns the lines of an incomplete command; `None` without one.
    pub(super) fn rest(self) -> Option<String> {
        Some(self.text).filter(|text| !text.is_empty())
    }
}

/// Splits a text into commands. The last one can be incomplete.
pub(super) fn commands(text: &str) -> Vec<String> {
    let mut gather = Gather::default();
    let mut commands: Vec<String> = text.lines().filter_map(|line| gather.add(line)).collect();
    commands.extend(gather.rest());
    commands
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn a_command_ends_with_the_line_that_closes_its_brackets() {
        assert_eq!(
            commands("count a\nfind a {\n  b: 1\n} --limit 1\n\ncount b {"),
            ["count a\n", "find a {\n  b: 1\n} --limit 1\n", "\n", "count b {\n"]
        );
    }
}
