-- Sessions, and their turns one row each. Hashes are lower-case hex. Times are Unix milliseconds.

CREATE TABLE sessions (
    caller      TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    -- The three are empty until they are known.
    title       TEXT   NOT NULL,
    model       TEXT   NOT NULL,
    agent       TEXT   NOT NULL,
    -- idle, running, waiting or failed.
    state       TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    updated_ms  BIGINT NOT NULL,
    PRIMARY KEY (caller, id)
);

-- For listing a caller's sessions, newest first.
CREATE INDEX sessions_by_caller ON sessions (caller, updated_ms, id);

-- For listing all sessions, and for pruning by age.
CREATE INDEX sessions_by_age ON sessions (updated_ms, caller, id);

CREATE TABLE turns (
    -- In the order of writing.
    number          BIGINT NOT NULL UNIQUE,
    caller          TEXT   NOT NULL,
    -- A UUID as 32 hexadecimal digits.
    run             TEXT   NOT NULL,
    session         TEXT   NOT NULL,
    -- The lineage of the request's messages.
    request_hash    TEXT   NOT NULL,
    -- The lineage with the reply; none while the turn is incomplete.
    after_hash      TEXT,
    -- The agent, the hash of its instructions, the reply that this turn continues, and the messages that it added to
    -- that. None for data that belongs to no transcript.
    agent           TEXT,
    thread_hash     TEXT,
    continues_hash  TEXT,
    messages        TEXT,
    steps           TEXT   NOT NULL,
    reply           TEXT,
    at_ms           BIGINT NOT NULL,
    -- When the last byte of the reply was sent to the client.
    delivered_ms    BIGINT,
    PRIMARY KEY (caller, run)
);

CREATE INDEX turns_by_request ON turns (caller, request_hash);

CREATE INDEX turns_by_session ON turns (caller, session, number);

-- For finding the hidden steps of the replies of a history.
CREATE INDEX turns_by_reply ON turns (caller, after_hash);

-- For pruning by age.
CREATE INDEX turns_by_age ON turns (at_ms);

-- Earlier records keep their hidden steps and can still be found by their hashes. The session heads were written and
-- never read.
INSERT INTO turns (number, caller, run, session, request_hash, after_hash, steps, reply, at_ms)
SELECT ROW_NUMBER() OVER (ORDER BY at_ms, caller, request_hash), caller, substr(request_hash, 1, 32), session,
    request_hash, after_hash, steps, reply, at_ms
FROM turn_records;

DROP TABLE turn_records;
DROP TABLE session_heads;
