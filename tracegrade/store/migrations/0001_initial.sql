-- Raw spans and log records as loaded, what each load read, and the tables that grading fills.
-- Docs: docs/store.md. Times are Unix nanoseconds; ids are lower-case hex.

CREATE TABLE origins (
    origin BIGINT NOT NULL,            -- digest of the columns below
    resource VARCHAR NOT NULL,         -- JSON object, keys sorted
    scope_name VARCHAR NOT NULL,
    scope_version VARCHAR NOT NULL,
    scope_attributes VARCHAR NOT NULL, -- JSON object
    schema_url VARCHAR NOT NULL
);

CREATE TABLE span_rows (
    row_no BIGINT NOT NULL,            -- order of arrival; says nothing about time
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    parent_span_id VARCHAR,
    name VARCHAR NOT NULL,
    kind TINYINT NOT NULL,
    start_ns BIGINT,
    end_ns BIGINT,
    status_code TINYINT NOT NULL,
    status_message VARCHAR NOT NULL DEFAULT '',
    attributes VARCHAR NOT NULL,
    events VARCHAR,
    links VARCHAR,
    origin BIGINT NOT NULL,
    trace_state VARCHAR NOT NULL DEFAULT '',
    flags UINTEGER NOT NULL DEFAULT 0,
    dropped_attributes UINTEGER NOT NULL DEFAULT 0,
    dropped_events UINTEGER NOT NULL DEFAULT 0,
    dropped_links UINTEGER NOT NULL DEFAULT 0,
    precision_ns INTEGER NOT NULL DEFAULT 1,
    size INTEGER NOT NULL              -- bytes of attributes, events and links
);

CREATE TABLE log_rows (
    row_no BIGINT NOT NULL,
    trace_id VARCHAR,
    span_id VARCHAR,
    time_ns BIGINT,
    event_name VARCHAR,
    severity INTEGER NOT NULL,
    body VARCHAR NOT NULL,
    attributes VARCHAR NOT NULL,
    origin BIGINT NOT NULL
);

CREATE TABLE loads (
    sha256 VARCHAR NOT NULL,           -- of the file as stored on disk; empty in memory
    size BIGINT NOT NULL,
    path VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    framing VARCHAR NOT NULL,
    compression VARCHAR NOT NULL,
    spans_read BIGINT NOT NULL,
    spans_distinct BIGINT NOT NULL,
    duplicates_dropped BIGINT NOT NULL,
    conflicting BIGINT NOT NULL,
    log_records BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    report JSON NOT NULL
);

CREATE VIEW spans AS
SELECT
    s.trace_id, s.span_id, s.parent_span_id, s.name,
    ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'][s.kind + 1] AS kind,
    s.start_ns, s.end_ns, s.end_ns - s.start_ns AS duration_ns,
    ['UNSET', 'OK', 'ERROR'][s.status_code + 1] AS status_code, s.status_message,
    s.attributes, o.resource, o.resource ->> 'service.name' AS service_name,
    o.scope_name, o.scope_version, o.scope_attributes, o.schema_url,
    s.trace_state, s.flags, s.dropped_attributes, s.dropped_events, s.dropped_links, s.precision_ns
FROM span_rows s
JOIN origins o ON o.origin = s.origin;

CREATE VIEW span_events AS
SELECT
    s.trace_id, s.span_id, e.value ->> 'name' AS name, CAST(e.value ->> 'time_ns' AS BIGINT) AS time_ns,
    e.value -> 'attributes' AS attributes, CAST(e.value ->> 'dropped_attributes' AS UINTEGER) AS dropped_attributes,
    CAST(e.key AS INTEGER) AS position
FROM span_rows s, json_each(s.events) e
WHERE s.events IS NOT NULL;

CREATE VIEW span_links AS
SELECT
    s.trace_id, s.span_id, l.value ->> 'trace_id' AS linked_trace_id, l.value ->> 'span_id' AS linked_span_id,
    l.value -> 'attributes' AS attributes, CAST(l.key AS INTEGER) AS position
FROM span_rows s, json_each(s.links) l
WHERE s.links IS NOT NULL;

CREATE VIEW log_records AS
SELECT
    l.trace_id, l.span_id, l.time_ns, l.event_name, l.severity, l.body, l.attributes,
    o.resource, o.resource ->> 'service.name' AS service_name, o.scope_name, o.scope_version
FROM log_rows l
JOIN origins o ON o.origin = l.origin;

CREATE TABLE trajectories (
    trajectory_id VARCHAR NOT NULL,
    trace_ids VARCHAR[] NOT NULL,
    conversation_id VARCHAR,
    task_id VARCHAR,
    trial VARCHAR,
    attempt INTEGER,
    complete BOOLEAN NOT NULL,
    verdict VARCHAR,
    joined_by VARCHAR,
    start_ns BIGINT,
    duration_ns BIGINT,
    gaps JSON,
    agents VARCHAR[],
    services VARCHAR[],
    models VARCHAR[],
    dialects VARCHAR[],
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    reasoning_tokens BIGINT,
    model_calls BIGINT,
    calls_without_usage BIGINT,
    usage_complete BOOLEAN,
    cost_usd DOUBLE
);

CREATE TABLE steps (
    trajectory_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    name VARCHAR,
    tool VARCHAR,
    call_id VARCHAR,
    agent VARCHAR,
    arguments JSON,
    arguments_state VARCHAR,
    arguments_raw VARCHAR,
    result JSON,
    result_state VARCHAR,
    status VARCHAR,
    status_evidence VARCHAR,
    requested BOOLEAN,
    executed BOOLEAN,
    turn INTEGER,
    role VARCHAR,
    text VARCHAR,
    text_state VARCHAR,
    model VARCHAR,
    prior BOOLEAN,
    start_ns BIGINT,
    end_ns BIGINT,
    trace_id VARCHAR,
    span_ids VARCHAR[],
    sources JSON
);

CREATE TABLE results (
    trajectory_id VARCHAR NOT NULL,
    invariant_id VARCHAR NOT NULL,
    kind VARCHAR,
    level VARCHAR NOT NULL,
    tags VARCHAR[],
    verdict VARCHAR NOT NULL,
    scope VARCHAR,
    n_seen INTEGER,
    measure JSON,
    waived VARCHAR
);

CREATE TABLE findings (
    trajectory_id VARCHAR,
    invariant_id VARCHAR NOT NULL,
    level VARCHAR NOT NULL,
    verdict VARCHAR,
    message VARCHAR NOT NULL,
    trace_id VARCHAR,
    span_ids VARCHAR[],
    expected VARCHAR,
    observed VARCHAR,
    missing VARCHAR[],
    count INTEGER,
    steps JSON,
    context JSON
);

CREATE TABLE outcomes (
    task_id VARCHAR,
    trial VARCHAR,
    attempt INTEGER,
    trajectory_id VARCHAR,
    trace_ids VARCHAR[],
    verdict VARCHAR,
    end_reason VARCHAR,
    passed BOOLEAN,
    cost_usd DOUBLE,
    duration_s DOUBLE,
    tags VARCHAR[],
    cluster VARCHAR,
    graders JSON
);
