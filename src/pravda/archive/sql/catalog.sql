-- name: insert_meta
INSERT INTO meta (name, value) VALUES (:name, :value)

-- name: meta
SELECT value FROM meta WHERE name = :name

-- name: count_stored
UPDATE meta SET value = value + :bytes WHERE name = 'stored_bytes' RETURNING value

-- name: set_stored
INSERT INTO meta (name, value) VALUES ('stored_bytes', :bytes)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: insert_snapshot
INSERT INTO snapshots (
    id, page, identity, key, url, state, reason, cause, captured_at,
    capture_id, content_sha256, content_from, row_hash, document
) VALUES (
    :id, :page, :identity, :key, :url, :state, :reason, :cause, :captured_at,
    :capture_id, :content_sha256, :content_from, :row_hash, :document
)

-- name: insert_artifact
INSERT INTO artifacts (snapshot_id, name, sha256, bytes, media_type, redacted, inline)
VALUES (:snapshot_id, :name, :sha256, :bytes, :media_type, :redacted, :inline)

-- name: get
SELECT id, captured_at, row_hash, document FROM snapshots WHERE id = :id

-- name: inline
SELECT inline FROM artifacts WHERE snapshot_id = :snapshot_id AND name = :name

-- name: find
SELECT id, captured_at, row_hash, document FROM snapshots

-- name: where_page
page = :page

-- name: where_identity
identity = :identity

-- name: where_key
key = :key

-- name: where_state
state = :state

-- name: where_since
captured_at >= :since

-- name: where_until
captured_at <= :until

-- name: where_before
(captured_at, id) < (:before_time, :before_id)

-- name: newest
ORDER BY captured_at DESC, id DESC LIMIT :limit
