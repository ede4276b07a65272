//! Questions about tool uses: asked once, resolved once.

use futures_util::future::BoxFuture;
use toolgate_model::approval::{Question, QuestionId, Resolution};

use crate::{StoreError, UnixMillis};

/// The largest question, as JSON: more than a person can read before deciding.
pub const MAX_QUESTION_BYTES: usize = 4 * 1024 * 1024;

/// The most questions one call returns.
pub const MAX_QUESTIONS_PER_PAGE: usize = 500;

/// Stores questions. The store is the truth: the first resolution counts, wherever it comes from.
pub trait QuestionStore: Send + Sync {
    /// Stores a question without a resolution. A question over [`MAX_QUESTION_BYTES`] is refused.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Resolves a question, unless it is resolved already.
    fn resolve<'a>(
        &'a self,
        id: &'a QuestionId,
        resolution: &'a Resolution,
    ) -> BoxFuture<'a, Result<Resolved, StoreError>>;

    /// Changes the deadline of a waiting question; `None` lets it wait for ever. False if it does not wait any more.
    fn set_deadline<'a>(
        &'a self,
        id: &'a QuestionId,
        deadline: Option<UnixMillis>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// One question.
    fn question<'a>(
        &'a self,
        id: &'a QuestionId,
    ) -> BoxFuture<'a, Result<Option<StoredQuestion>, StoreError>>;

    /// The waiting questions, oldest first, at most [`MAX_QUESTIONS_PER_PAGE`].
    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, StoreError>>;

    /// The resolved questions, newest resolution first, before this time, at most `limit`.
    fn resolved(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredQuestion>, StoreError>>;

    /// Deletes the questions that were resolved before `older_than` and returns how many.
    fn prune_questions(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// A question and its resolution; `None` while it waits.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredQuestion {
    /// The question.
    pub question: Question,
    /// How it ended.
    pub resolution: Option<Resolution>,
}

/// The result of [`QuestionStore::resolve`].
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// This resolution counts.
    Now,
    /// An earlier one counts: this one.
    Before(Resolution),
    /// There is no such question.
    Unknown,
}
