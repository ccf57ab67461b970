use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bson::{Document, doc};

use super::{Examined, ReportedPlan, Tally};

/// The current work of a running command, which other threads can read: the plan that it executes, and the keys and documents examined so far; see
/// [`Commands::with_activity`](crate::Commands::with_activity).
///
/// ```
/// # let db = slate_core::Database::open("memory:")?;
/// use bson::rawdoc;
/// use slate_core::Activity;
///
/// db.collection("users").insert_many(&[rawdoc! { "age": 36 }, rawdoc! { "age": 85 }]).run()?;
/// let activity = Activity::default();
/// db.commands().with_activity(&activity).run(rawdoc! { "find": "users", "filter": { "age": { "$gt": 40 } } })?;
/// assert_eq!(activity.plan_summary().as_deref(), Some("COLLSCAN"));
/// assert_eq!(activity.documents_examined(), 2);
/// # Ok::<(), slate_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Activity(Arc<Mutex<Current>>);

#[derive(Default)]
struct Current {
    /// Keys and documents examined without a plan, and by the plans before the current one.
    examined: Examined,
    summary: Option<PlanSummary>,
    plans: Plans,
    /// The tally of the current plan, and its counts when this activity began to show it: a cursor's plan has read earlier batches.
    plan: Option<(Arc<Tally>, Examined)>,
}

/// The plan that the summary is about, if the activity records plans.
#[derive(Clone, Default)]
enum Plans {
    #[default]
    NotRecorded,
    Recorded(Option<ReportedPlan>),
}

/// How a plan reads its records, as in MongoDB's `planSummary`.
#[derive(Clone)]
pub(crate) enum PlanSummary {
    Stage(&'static str),
    /// A stage that reads an index, which is displayed as its key pattern.
    Index(&'static str, Arc<dyn fmt::Display + Send + Sync>),
    Several(Arc<[Self]>),
}

/// The stage of a read by the express path.
const EXPRESS: &str = "EXPRESS_IXSCAN";

impl PlanSummary {
    /// The summary of a lookup by `_id`.
    pub(crate) const LOOKUP: Self = Self::Stage("EXPRESS_IXSCAN { _id: 1 }");
}

/// Formats as MongoDB does: `IXSCAN { a: 1 }`; several are separated by commas.
impl fmt::Display for PlanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(stage) => f.write_str(stage),
            Self::Index(stage, keys) => write!(f, "{stage} {keys}"),
            Self::Several(several) => several.iter().enumerate().try_for_each(|(place, one)| {
                let separator = if place > 0 { ", " } else { "" };
                write!(f, "{separator}{one}")
            }),
        }
    }
}

impl fmt::Debug for PlanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Activity {
    /// Returns an activity that also records the [`plan`](Self::plan). This costs a copy of each plan.
    pub fn with_plan() -> Self {
        Self(Arc::new(Mutex::new(Current { plans: Plans::Recorded(None), ..Current::default() })))
    }

    /// Returns the stages of the plan of [`plan_summary`](Self::plan_summary), as MongoDB's `explain` shows them. `None` unless the activity was made
    /// [`with_plan`](Self::with_plan), and for a plan that reads no stored data.
    pub fn plan(&self) -> Option<Document> {
        let (plan, summary) = {
            let current = self.lock();
            let Plans::Recorded(plan) = &current.plans else { return None };
            (plan.clone(), current.summary.clone())
        };
        match plan {
            Some(plan) => Some((plan.0)().shape.plan).filter(|stages| !stages.is_empty()),
            // A lookup has no plan. The plan of a cursor is not known if the activity that opened it records none.
            None => {
                let summary = summary?.to_string();
                let keys = summary.strip_prefix(EXPRESS)?.trim_start();
                Some(doc! { "stage": EXPRESS, "keyPattern": keys })
            }
        }
    }

    /// Returns how the plan reads its records, as MongoDB's `planSummary`: `COLLSCAN`, `IXSCAN { age: 1 }`. The summary is about the last statement
    /// that began; `None` before the first one is planned, and for a command without a plan.
    pub fn plan_summary(&self) -> Option<String> {
        self.lock().summary.as_ref().map(ToString::to_string)
    }

    /// Returns how many keys the command has examined so far.
    pub fn keys_examined(&self) -> u64 {
        self.lock().all_examined().keys
    }

    /// Returns how many documents the command has examined so far.
    pub fn documents_examined(&self) -> u64 {
        self.lock().all_examined().documents
    }

    /// Shows the plan with this tally instead of the previous one. Has no effect if it is shown already.
    pub(crate) fn executes(&self, tally: &Arc<Tally>) {
        let mut current = self.lock();
        if current.plan.as_ref().is_some_and(|(own, _)| Arc::ptr_eq(own, tally)) {
            return;
        }
        current.examined = current.all_examined();
        current.plan = Some((Arc::clone(tally), tally.examined()));
        current.summary = None;
        current.plans.forget();
    }

    /// Shows how the plan reads its records. Of several plans with one tally, those of a bulk write or a join, the first is shown.
    pub(crate) fn summarize(&self, summary: PlanSummary, plan: impl FnOnce() -> Option<ReportedPlan>) {
        let mut current = self.lock();
        if current.summary.is_some() {
            return;
        }
        current.summary = Some(summary);
        if let Plans::Recorded(recorded) = &mut current.plans {
            *recorded = plan();
        }
    }

    /// Shows a read that needed no plan.
    pub(crate) fn read(&self, summary: PlanSummary, examined: Examined) {
        let mut current = self.lock();
        current.examined = current.all_examined() + examined;
        (current.summary, current.plan) = (Some(summary), None);
        current.plans.forget();
    }

    /// Shows the plan of a cursor that an earlier command opened.
    pub(crate) fn continues(&self, opened: &Self) {
        let (summary, plan, plans) = {
            let opened = opened.lock();
            (opened.summary.clone(), opened.plan.as_ref().map(|(tally, _)| Arc::clone(tally)), opened.plans.clone())
        };
        if let Some(tally) = plan {
            self.executes(&tally);
        }
        let mut current = self.lock();
        current.summary = summary;
        if let (Plans::Recorded(plan), Plans::Recorded(opened)) = (&mut current.plans, plans) {
            *plan = opened;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plans {
    fn forget(&mut self) {
        if let Self::Recorded(plan) = self {
            *plan = None;
        }
    }
}

impl Current {
    fn all_examined(&self) -> Examined {
        let of_plan = self.plan.as_ref().map(|(tally, before)| tally.examined().since(*before));
        self.examined + of_plan.unwrap_or_default()
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Examined { keys, documents } = self.lock().all_examined();
        let plan = self.plan_summary();
        f.debug_struct("Activity").field("plan", &plan).field("keys", &keys).field("documents", &documents).finish()
    }
}
