-- Types and syntax that SQLite and Postgres read alike. Times are Unix milliseconds.
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
    turn_id         TEXT    NOT NULL PRIMARY KEY,
    at_ms           BIGINT  NOT NULL,
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
    first_event_ms  BIGINT
);

-- For summaries since a moment, and for pruning.
CREATE INDEX usage_records_by_time ON usage_records (at_ms);
