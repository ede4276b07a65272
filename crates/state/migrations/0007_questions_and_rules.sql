-- Questions about tool uses with their resolutions, and rules made while the gateway runs. Times are Unix milliseconds.

CREATE TABLE questions (
    id           TEXT   NOT NULL PRIMARY KEY,
    caller       TEXT   NOT NULL,
    session      TEXT   NOT NULL,
    agent        TEXT   NOT NULL,
    -- waiting, decided, timed_out or withdrawn.
    state        TEXT   NOT NULL,
    asked_ms     BIGINT NOT NULL,
    -- Takes precedence over the deadline in the JSON; none if the question waits for ever.
    deadline_ms  BIGINT,
    resolved_ms  BIGINT,
    -- As JSON.
    question     TEXT   NOT NULL,
    resolution   TEXT
);

-- For listing waiting questions.
CREATE INDEX questions_by_state ON questions (state, asked_ms, id);

CREATE INDEX questions_by_session ON questions (caller, session);

-- For listing resolved questions, and for pruning by age.
CREATE INDEX questions_by_resolution ON questions (resolved_ms, id);

CREATE TABLE rules (
    id            TEXT    NOT NULL PRIMARY KEY,
    text          TEXT    NOT NULL,
    -- session, project or all, and which session or folder.
    scope         TEXT    NOT NULL,
    scope_name    TEXT    NOT NULL,
    -- The question whose answer made the rule.
    question      TEXT,
    made_by       TEXT    NOT NULL,
    created_ms    BIGINT  NOT NULL,
    expires_ms    BIGINT,
    last_used_ms  BIGINT,
    revoked       BOOLEAN NOT NULL
);

CREATE INDEX rules_by_age ON rules (created_ms, id);
