-- name: counts
SELECT
    (SELECT count(*) FROM snapshots),
    (SELECT count(*) FROM (SELECT DISTINCT sha256, bytes FROM artifacts WHERE inline IS NULL))

-- name: rows
SELECT
    rowid, id, page, identity, key, url, state, reason, cause, captured_at,
    capture_id, content_sha256, content_from, row_hash, document
FROM snapshots WHERE rowid > :after ORDER BY rowid LIMIT :limit

-- name: artifacts
SELECT name, sha256, bytes, media_type, redacted, inline FROM artifacts WHERE snapshot_id = :id

-- name: holder
SELECT content_from, content_sha256 FROM snapshots WHERE id = :id

-- name: blobs
SELECT sha256, bytes, min(snapshot_id), count(*) FROM artifacts
WHERE inline IS NULL AND (sha256, bytes) > (:after, :size) AND sha256 < :end
GROUP BY sha256, bytes ORDER BY sha256, bytes LIMIT :limit

-- name: named
SELECT 1 FROM artifacts WHERE inline IS NULL AND sha256 = :sha256 LIMIT 1

-- name: structure
PRAGMA integrity_check(20)

-- name: strays
SELECT snapshot_id, name FROM artifacts
WHERE NOT EXISTS (SELECT 1 FROM snapshots WHERE id = snapshot_id) LIMIT :limit
