-- Facts about the archive itself: `secret` (key for hashes of secrets), `created_at`, `format`.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT;

-- One row per attempt. `document` is the whole snapshot; the other columns are copies to find it by.
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    page TEXT NOT NULL,
    identity TEXT NOT NULL,
    key TEXT,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    cause TEXT,
    captured_at TEXT NOT NULL,
    capture_id TEXT NOT NULL,
    content_sha256 TEXT,
    content_from TEXT,
    row_hash TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

-- One row per kept artifact. `inline` holds the bytes of a small one; NULL: they are in the blob `sha256`.
CREATE TABLE artifacts (
    snapshot_id TEXT NOT NULL REFERENCES snapshots (id),
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    redacted INTEGER NOT NULL,
    inline BLOB,
    PRIMARY KEY (snapshot_id, name)
) STRICT;

-- Every listing is newest first by (captured_at, id); each index ends with that order, so none has to sort.
CREATE INDEX snapshots_by_time ON snapshots (captured_at, id);
CREATE INDEX snapshots_by_state ON snapshots (state, captured_at, id);
CREATE INDEX snapshots_by_page ON snapshots (page, captured_at, id);
CREATE INDEX snapshots_by_page_state ON snapshots (page, state, captured_at, id);
CREATE INDEX snapshots_by_identity ON snapshots (identity, captured_at, id);
CREATE INDEX snapshots_by_identity_state ON snapshots (identity, state, captured_at, id);
CREATE INDEX snapshots_by_key ON snapshots (key, captured_at, id) WHERE key IS NOT NULL;
CREATE INDEX snapshots_by_key_state ON snapshots (key, state, captured_at, id) WHERE key IS NOT NULL;

CREATE TRIGGER snapshots_keep_rows BEFORE DELETE ON snapshots
BEGIN
    SELECT RAISE(ABORT, 'snapshots are append-only');
END;

CREATE TRIGGER snapshots_keep_values BEFORE UPDATE ON snapshots
BEGIN
    SELECT RAISE(ABORT, 'snapshots are append-only');
END;

CREATE TRIGGER artifacts_keep_rows BEFORE DELETE ON artifacts
BEGIN
    SELECT RAISE(ABORT, 'artifacts are append-only');
END;

CREATE TRIGGER artifacts_keep_values BEFORE UPDATE ON artifacts
BEGIN
    SELECT RAISE(ABORT, 'artifacts are append-only');
END;
