//! Questions about tool uses: asked once, resolved once.

use futures_util::future::BoxFuture;
use serde::Serialize;
use toolgate_model::approval::{Question, QuestionId, Resolution};

use crate::{StoreError, UnixMillis};

/// The largest question, as JSON: more than a person can read before deciding.
pub const MAX_QUESTION_BYTES: usize = 4 * 1024 * 1024;

/// The most questions one call returns.
pub const MAX_QUESTIONS_PER_PAGE: usize = 500;

/// Stores questions. The store is the truth: the first resolution counts, wherever it comes from.
pub trait QuestionStore: Send + Sync {
    /// Stores a question without a resolution. A known id changes nothing, so that repeating the call is safe. A question
    /// over [`MAX_QUESTION_BYTES`] is refused.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Resolves a question, unless it is resolved already: of several resolutions at the same time, exactly one counts. A
    /// resolution over [`MAX_QUESTION_BYTES`] is refused.
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

    /// The waiting questions, oldest first and then by id, at most [`MAX_QUESTIONS_PER_PAGE`].
    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, StoreError>>;

    /// The resolved questions, newest resolution first and then by id, before this time, at most `limit`, which is itself
    /// limited to [`MAX_QUESTIONS_PER_PAGE`].
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

/// The question as JSON. Every store writes it before it stores anything, so that all have the same limit.
pub(crate) fn write_question(question: &Question) -> Result<String, StoreError> {
    write("question", question)
}

/// The resolution as JSON.
pub(crate) fn write_resolution(resolution: &Resolution) -> Result<String, StoreError> {
    write("resolution", resolution)
}

fn write(what: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    let written = serde_json::to_string(value)
        .map_err(|source| StoreError::Unwritable { what, source: Box::new(source) })?;
    if written.len() > MAX_QUESTION_BYTES {
        return Err(StoreError::QuestionTooLarge { what, bytes: written.len() });
    }
    Ok(written)
}
