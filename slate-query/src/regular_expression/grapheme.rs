/// Matches one extended grapheme cluster (UAX #29, table 1c), as `\X` does.
pub(super) const CLUSTER: &str = concat!(
    r"(?>\r\n|[\p{gcb=Control}\r\n]|\p{gcb=Prepend}*(?:",
    // A syllable of Hangul, a flag, a sequence of emoji, or any other character.
    r"\p{gcb=L}*(?:\p{gcb=V}+|\p{gcb=LV}\p{gcb=V}*|\p{gcb=LVT})\p{gcb=T}*|\p{gcb=L}+|\p{gcb=T}+",
    r"|\p{gcb=RI}\p{gcb=RI}|\p{Extended_Pictographic}(?:\p{gcb=Extend}*\p{gcb=ZWJ}\p{Extended_Pictographic})*",
    r"|[^\p{gcb=Control}\r\n])[\p{gcb=Extend}\p{gcb=ZWJ}\p{gcb=SpacingMark}]*|(?s:.))"
);
