-- A row of usage is numbers only: what repeats from turn to turn stands once, in usage_kinds.

CREATE TABLE usage_kinds (
    -- AUTOINCREMENT: the id of a forgotten kind never comes to mean another one.
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    -- No row of this kind is from after this moment. Every thirty days have kinds of their own, so that a kind can be
    -- forgotten when the rows of its time are, without looking for rows that use it.
    until_ms  BIGINT  NOT NULL,
    caller    TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    upstream  TEXT    NOT NULL,
    dialect   TEXT    NOT NULL,
    status    INTEGER NOT NULL,
    UNIQUE (until_ms, caller, model, upstream, dialect, status)
);

CREATE TABLE usage_rows (
    at_ms           BIGINT  NOT NULL,
    -- The two halves of the turn's UUID.
    turn_high       BIGINT  NOT NULL,
    turn_low        BIGINT  NOT NULL,
    kind            INTEGER NOT NULL,
    -- Two counts of 32 bits each, since every value of a row costs a write the same: input and output above and below,
    -- then cache_read and cache_write.
    tokens          BIGINT  NOT NULL,
    cached          BIGINT  NOT NULL,
    duration_ms     BIGINT  NOT NULL,
    first_event_ms  BIGINT,
    PRIMARY KEY (at_ms, turn_high, turn_low)
) WITHOUT ROWID;

INSERT INTO usage_kinds (until_ms, caller, model, upstream, dialect, status)
SELECT DISTINCT at_ms - at_ms % 2592000000 + 2591999999, caller, model, upstream, dialect, status
FROM usage_records;

-- SQLite reads hexadecimal numbers as JSON, and up to 63 bits: hence quarters of a UUID.
INSERT INTO usage_rows
SELECT
    at_ms,
    (('0x' || substr(turn_id, 1, 8)) ->> '$') << 32
        | (('0x' || substr(turn_id, 10, 4) || substr(turn_id, 15, 4)) ->> '$'),
    (('0x' || substr(turn_id, 20, 4) || substr(turn_id, 25, 4)) ->> '$') << 32
        | (('0x' || substr(turn_id, 29, 8)) ->> '$'),
    kind.id, input << 32 | output, cache_read << 32 | cache_write, duration_ms, first_event_ms
FROM usage_records AS old
JOIN usage_kinds AS kind
    ON kind.until_ms = old.at_ms - old.at_ms % 2592000000 + 2591999999
    AND kind.caller = old.caller AND kind.model = old.model AND kind.upstream = old.upstream
    AND kind.dialect = old.dialect AND kind.status = old.status;

DROP TABLE usage_records;

-- For people: the rows with their names.
CREATE VIEW usage_records AS
SELECT
    at_ms,
    printf('%08x-%04x-%04x-%04x-%012x',
        turn_high >> 32 & 0xffffffff, turn_high >> 16 & 0xffff, turn_high & 0xffff,
        turn_low >> 48 & 0xffff, turn_low & 0xffffffffffff) AS turn_id,
    caller, model, upstream, dialect, status,
    tokens >> 32 & 0xffffffff AS input,
    cached >> 32 & 0xffffffff AS cache_read,
    cached & 0xffffffff AS cache_write,
    tokens & 0xffffffff AS output,
    duration_ms, first_event_ms
FROM usage_rows JOIN usage_kinds ON usage_kinds.id = usage_rows.kind;
