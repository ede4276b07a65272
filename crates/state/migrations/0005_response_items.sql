-- Items of stored responses, which later requests name by their id. An item belongs to the last response that had it.

CREATE TABLE response_items (
    caller         TEXT   NOT NULL,
    id             TEXT   NOT NULL,
    response_id    TEXT   NOT NULL,
    created_at_ms  BIGINT NOT NULL,
    body           TEXT   NOT NULL,
    PRIMARY KEY (caller, id)
);

-- For deleting a response with its items.
CREATE INDEX response_items_by_response ON response_items (caller, response_id);

-- For pruning by age.
CREATE INDEX response_items_by_age ON response_items (created_at_ms);
