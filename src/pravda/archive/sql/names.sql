-- name: beginning
SELECT id FROM snapshots WHERE id >= :first AND id < :behind ORDER BY id LIMIT :limit
