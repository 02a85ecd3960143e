-- What a later comparison needs of a grading besides its verdicts: by what was graded, and what the trials were.
ALTER TABLE trajectories ADD COLUMN tags VARCHAR[];
ALTER TABLE trajectories ADD COLUMN cluster VARCHAR;
ALTER TABLE trajectories ADD COLUMN tool_calls BIGINT;
ALTER TABLE results ADD COLUMN gates BOOLEAN;
ALTER TABLE outcomes ADD COLUMN seed VARCHAR;
ALTER TABLE outcomes ADD COLUMN human_minutes DOUBLE;
ALTER TABLE outcomes ADD COLUMN fingerprint VARCHAR;
ALTER TABLE outcomes ADD COLUMN labels JSON;
ALTER TABLE outcomes ADD COLUMN task_sha256 VARCHAR;

CREATE TABLE gradings (
    tracegrade_version VARCHAR NOT NULL,
    group_by VARCHAR NOT NULL,
    rule_sources VARCHAR[] NOT NULL,
    tasks_sha256 VARCHAR,
    rules JSON NOT NULL,
    protocol JSON NOT NULL,
    dialects JSON NOT NULL
);
