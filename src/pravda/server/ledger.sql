-- name: schema
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    per_minute INTEGER
) STRICT;
-- Captures that somebody may ask for again: asynchronous ones, and those with an Idempotency-Key.
CREATE TABLE IF NOT EXISTS captures (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    idempotency TEXT,
    fingerprint TEXT,
    http_status INTEGER,
    document TEXT
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS captures_by_idempotency ON captures (owner, idempotency) WHERE idempotency IS NOT NULL;
CREATE INDEX IF NOT EXISTS captures_by_end ON captures (ended_at);

-- name: insert_secret
INSERT OR IGNORE INTO meta (name, value) VALUES ('secret', :value)

-- name: secret
SELECT value FROM meta WHERE name = 'secret'

-- name: insert_key
INSERT INTO keys (id, hash, name, scopes, created_at, expires_at, per_minute)
VALUES (:id, :hash, :name, :scopes, :created_at, :expires_at, :per_minute)

-- name: keys
SELECT id, hash, name, scopes, created_at, expires_at, revoked_at, per_minute FROM keys ORDER BY created_at, id

-- name: key
SELECT id, hash, name, scopes, created_at, expires_at, revoked_at, per_minute FROM keys WHERE id = :id

-- name: any_key
SELECT 1 FROM keys LIMIT 1

-- name: revoke_key
UPDATE keys SET revoked_at = :revoked_at WHERE id = :id

-- name: insert_capture
INSERT INTO captures (id, owner, url, status, created_at, idempotency, fingerprint)
VALUES (:id, :owner, :url, 'queued', :created_at, :idempotency, :fingerprint)

-- name: end_capture
UPDATE captures SET status = :status, ended_at = :ended_at, http_status = :http_status, document = :document,
    idempotency = CASE WHEN :keep THEN idempotency END
WHERE id = :id

-- name: drop_capture
DELETE FROM captures WHERE id = :id

-- name: capture
SELECT id, owner, url, status, created_at, ended_at, fingerprint, http_status, document FROM captures WHERE id = :id

-- name: claimed
SELECT id, owner, url, status, created_at, ended_at, fingerprint, http_status, document FROM captures
WHERE owner = :owner AND idempotency = :idempotency

-- name: interrupt
UPDATE captures SET status = 'interrupted', ended_at = :ended_at, idempotency = NULL WHERE ended_at IS NULL

-- name: forget
DELETE FROM captures WHERE ended_at < :before
