-- Types and syntax that SQLite and Postgres read alike, but for WITHOUT ROWID. Times are Unix milliseconds.
-- An applied migration is never edited (its checksum is kept in the database): add a new file.

CREATE TABLE responses (
    caller         TEXT   NOT NULL,
    id             TEXT   NOT NULL,
    previous_id    TEXT,
    created_at_ms  BIGINT NOT NULL,
    model          TEXT   NOT NULL,
    body           TEXT   NOT NULL,
    PRIMARY KEY (caller, id)
);

-- For pruning by age.
CREATE INDEX responses_by_age ON responses (created_at_ms);

CREATE TABLE usage_records (
    at_ms           BIGINT  NOT NULL,
    turn_id         TEXT    NOT NULL,
    caller          TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    upstream        TEXT    NOT NULL,
    dialect         TEXT    NOT NULL,
    status          INTEGER NOT NULL,
    input           BIGINT  NOT NULL,
    cache_read      BIGINT  NOT NULL,
    cache_write     BIGINT  NOT NULL,
    output          BIGINT  NOT NULL,
    duration_ms     BIGINT  NOT NULL,
    first_event_ms  BIGINT,
    -- By time, for summaries since a moment and for pruning. One tree to write to instead of three: every turn
    -- writes here.
    PRIMARY KEY (at_ms, turn_id)
) WITHOUT ROWID;
