-- One ordinary table of usage in place of the packed rows, their names and the view over both.

CREATE TABLE plain_usage_records (
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
    -- By time first: summaries and pruning select by time, and new rows go to the end.
    PRIMARY KEY (at_ms, turn_id)
) WITHOUT ROWID;

INSERT INTO plain_usage_records
SELECT at_ms, turn_id, caller, model, upstream, dialect, status,
    input, cache_read, cache_write, output, duration_ms, first_event_ms
FROM usage_records;

DROP VIEW usage_records;
DROP TABLE usage_rows;
DROP TABLE usage_kinds;

ALTER TABLE plain_usage_records RENAME TO usage_records;
