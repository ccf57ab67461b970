use serde_json::{Value, json};

use crate::records::values;

/// Number of companies: the other side of the joins.
pub const COMPANIES: i32 = 1_000;

/// A company, which belongs to the records whose `contacts_count` is its `code`: a tenth of the companies have records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company {
    /// Its number, which is also its `_id`.
    pub code: i32,
    /// One of five.
    pub region: &'static str,
}

impl Company {
    /// Generates all companies.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..COMPANIES).zip(values::REGIONS.into_iter().cycle()).map(|(code, region)| Self { code, region })
    }

    /// Returns the company as JSON.
    pub fn to_json(self) -> Value {
        json!({ "_id": self.code, "code": self.code, "region": self.region })
    }
}
