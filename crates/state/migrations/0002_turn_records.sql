-- What an agent did in each turn. Hashes are lower-case hex. Times are Unix milliseconds.

CREATE TABLE turn_records (
    caller        TEXT   NOT NULL,
    -- The lineage of the request's messages.
    request_hash  TEXT   NOT NULL,
    -- The lineage with the reply; none while the turn is cut short.
    after_hash    TEXT,
    session       TEXT   NOT NULL,
    steps         TEXT   NOT NULL,
    reply         TEXT,
    at_ms         BIGINT NOT NULL,
    PRIMARY KEY (caller, request_hash)
);

-- For finding what stands behind the replies of a history.
CREATE INDEX turn_records_by_reply ON turn_records (caller, after_hash);

-- For pruning by age.
CREATE INDEX turn_records_by_age ON turn_records (at_ms);

-- The last turn of each session.
CREATE TABLE session_heads (
    caller        TEXT   NOT NULL,
    session       TEXT   NOT NULL,
    request_hash  TEXT   NOT NULL,
    at_ms         BIGINT NOT NULL,
    PRIMARY KEY (caller, session)
);

CREATE INDEX session_heads_by_age ON session_heads (at_ms);
