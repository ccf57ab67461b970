use super::invalid;
use crate::Result;

/// The modes that the translation implements itself. The engine implements the others.
#[derive(Clone, Copy)]
pub(super) struct Modes {
    pub(super) multiline: bool,
    pub(super) extended: bool,
}

/// How many characters an item or a branch matches; `None` if that differs between texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Length(Option<usize>);

impl Length {
    pub(super) const ZERO: Self = Self(Some(0));
    pub(super) const ONE: Self = Self(Some(1));
    pub(super) const VARIABLE: Self = Self(None);

    fn plus(self, other: Self) -> Self {
        Self(self.0.zip(other.0).and_then(|(one, other)| one.checked_add(other)))
    }

    /// Returns the length of the item with a quantifier.
    fn times(self, quantifier: &str) -> Self {
        let times = quantifier.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let times = times.and_then(|times| match times.split_once(',') {
            Some((least, most)) if least == most => least.parse().ok(),
            Some(_) => None,
            None => times.parse::<usize>().ok(),
        });
        Self(self.0.zip(times).and_then(|(length, times)| length.checked_mul(times)))
    }
}

/// How the work of a match from one start grows with the text, as long as the engine does not step back: as this power
/// of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Growth(u32);

impl Growth {
    /// At most as much as the pattern is long.
    pub(super) const CONSTANT: Self = Self(0);
    pub(super) const LINEAR: Self = Self(1);

    fn repeated(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the characters that are read in a text of this length.
    pub(super) fn work(self, length: usize) -> u64 {
        u64::try_from(length.max(1)).unwrap_or(u64::MAX).saturating_pow(self.0)
    }
}

/// The kind of a pair of parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A group, with or without a number, or the whole pattern.
    Group,
    Lookahead,
    Lookbehind,
    /// The lookahead that decides between the branches of a conditional group.
    Condition,
    /// The lookbehind that decides between the branches of a conditional group.
    ConditionBehind,
    Conditional,
}

impl Kind {
    /// Returns whether it is lookaround.
    pub(super) fn is_assertion(self) -> bool {
        !matches!(self, Self::Group | Self::Conditional)
    }
}

/// A group being read, or the whole pattern.
pub(super) struct OpenGroup {
    pub(super) kind: Kind,
    /// The text that ends the group in the translation.
    pub(super) closing: &'static str,
    /// Where the group starts in the translation.
    pub(super) start: usize,
    pub(super) modes: Modes,
    /// The length of the current branch up to its last item.
    before: Length,
    /// The length of the last item.
    item: Length,
    /// The lengths of the finished branches.
    pub(super) lengths: Vec<Length>,
    /// Whether the current branch ends at the end of the text (`$`).
    pub(super) ended: bool,
    /// Whether a finished branch ends at the end of the text.
    other_ended: bool,
    /// How the work of one pass through the group grows with the text.
    pub(super) growth: Growth,
    /// How the work of its lookaround grows, which is repeated where the group is repeated.
    lookaround: Growth,
    /// How the work of the last item's lookaround grows.
    item_lookaround: Growth,
}

impl OpenGroup {
    pub(super) fn pattern(modes: Modes) -> Self {
        Self::group(Kind::Group, "", 0, modes)
    }

    pub(super) fn group(kind: Kind, closing: &'static str, start: usize, modes: Modes) -> Self {
        let (before, item, lengths) = (Length::ZERO, Length::ZERO, Vec::new());
        let [growth, lookaround, item_lookaround] = [Growth::CONSTANT; 3];
        let (ended, other_ended) = (false, false);
        Self {
            kind,
            closing,
            start,
            modes,
            before,
            item,
            lengths,
            ended,
            other_ended,
            growth,
            lookaround,
            item_lookaround,
        }
    }

    /// Appends an item to the current branch.
    pub(super) fn push(&mut self, item: Length) {
        self.before = self.before.plus(self.item);
        self.item = item;
        self.item_lookaround = Growth::CONSTANT;
    }

    /// Repeats the last item. A repetition passes through the text once, but its lookaround starts again each time.
    pub(super) fn repeat(&mut self, quantifier: &str) {
        let is_unlimited = matches!(quantifier, "*" | "+") || quantifier.ends_with(",}");
        if is_unlimited || quantifier != "?" && self.item_lookaround > Growth::CONSTANT {
            self.growth = self.growth.max(self.item_lookaround.repeated());
        }
        self.item = self.item.times(quantifier);
    }

    /// Records that the last item can read the whole text.
    pub(super) fn read_whole(&mut self) {
        self.growth = self.growth.max(Growth::LINEAR);
    }

    /// Returns whether the last item matches only the empty text.
    pub(super) fn is_item_empty(&self) -> bool {
        self.item == Length::ZERO
    }

    pub(super) fn end_branch(&mut self) {
        self.lengths.push(self.before.plus(self.item));
        (self.before, self.item) = (Length::ZERO, Length::ZERO);
        self.other_ended |= self.ended;
        self.ended = false;
    }

    pub(super) fn has_too_many_branches(&self) -> bool {
        self.kind == Kind::Conditional && self.lengths.len() > 1
    }

    /// Makes the ended group the last item of this one. Returns whether the item can end at the end of the text.
    ///
    /// # Errors
    /// 51091 for a lookbehind whose branches have no fixed length, as in PCRE.
    pub(super) fn take(&mut self, mut group: OpenGroup) -> Result<bool> {
        group.end_branch();
        if group.kind == Kind::Conditional && group.lengths.len() == 1 {
            group.lengths.push(Length::ZERO);
        }
        let is_behind = matches!(group.kind, Kind::Lookbehind | Kind::ConditionBehind);
        if is_behind && group.lengths.contains(&Length::VARIABLE) {
            return Err(invalid("lookbehind assertion is not fixed length"));
        }
        self.growth = self.growth.max(group.growth);
        self.item_lookaround = if group.kind.is_assertion() { group.growth } else { group.lookaround };
        self.lookaround = self.lookaround.max(self.item_lookaround);
        let first = group.lengths.first().copied().unwrap_or(Length::ZERO);
        let is_same = group.lengths.iter().all(|length| *length == first);
        self.item = match group.kind {
            kind if kind.is_assertion() => Length::ZERO,
            _ if is_same => first,
            _ => Length::VARIABLE,
        };
        Ok(group.other_ended)
    }
}
