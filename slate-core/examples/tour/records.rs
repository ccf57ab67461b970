use bson::{DateTime, RawDocumentBuf};
use serde::{Deserialize, Serialize};

/// A record of a sales tool: six required fields, and two that can be null.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(rename = "_id")]
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) contacts_count: i32,
    pub(crate) product_recommendation1: String,
    pub(crate) product_recommendation2: String,
    pub(crate) product_recommendation3: String,
    pub(crate) tags: Vec<String>,
    pub(crate) last_contacted_at: Option<DateTime>,
    pub(crate) notes: Option<String>,
}

const FIRST: &[&str] = &["Ada", "Edgar", "Grace", "Barbara", "Alan", "Donald", "Leslie", "Tony", "Edsger", "Niklaus"];
const LAST: &[&str] = &["Lovelace", "Codd", "Hopper", "Liskov", "Turing", "Knuth", "Lamport", "Hoare", "Dijkstra"];
const TAGS: &[&str] = &["renewal_due", "vip", "new_lead", "churn_risk", "upsell"];
const YEAR_MILLIS: u64 = 365 * 24 * 3_600 * 1_000;

/// Generates the records of a seed.
pub(crate) struct Maker(u64);

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        let at = usize::try_from(self.below(words.len() as u64)).unwrap_or_default();
        words.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn raw(&mut self, id: usize) -> Result<RawDocumentBuf, Box<dyn std::error::Error>> {
        Ok(bson::serialize_to_raw_document_buf(&self.record(i32::try_from(id)?)?)?)
    }

    fn record(&mut self, id: i32) -> Result<Record, std::num::TryFromIntError> {
        let tags = 2 + self.below(3);
        Ok(Record {
            id,
            name: format!("{} {} {}", self.pick(FIRST), self.pick(LAST), self.below(10_000)),
            status: self.pick(&["active", "rejected"]).into(),
            contacts_count: i32::try_from(self.below(101))?,
            product_recommendation1: self.pick(&["ProductA", "ProductB", "ProductC"]).into(),
            product_recommendation2: self.pick(&["ProductX", "ProductY", "ProductZ"]).into(),
            product_recommendation3: self.pick(&["Widget1", "Widget2", "Widget3"]).into(),
            tags: (0..tags).map(|_| self.pick(TAGS).into()).collect(),
            last_contacted_at: match self.below(10) {
                0..3 => None,
                _ => Some(DateTime::from_millis(1_700_000_000_000 + i64::try_from(self.below(YEAR_MILLIS))?)),
            },
            notes: (self.below(2) == 0).then(|| format!("note {}", self.below(1_000))),
        })
    }
}
