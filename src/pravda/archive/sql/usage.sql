-- name: totals
SELECT
    (SELECT count(*) FROM snapshots),
    (SELECT count(*) FROM artifacts),
    (SELECT coalesce(sum(bytes), 0) FROM artifacts),
    (SELECT coalesce(sum(length(inline)), 0) FROM artifacts),
    (SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT sha256, bytes FROM artifacts WHERE inline IS NULL))

-- name: pages
SELECT page, count(*), coalesce(sum((SELECT sum(bytes) FROM artifacts WHERE snapshot_id = id)), 0) FROM snapshots
WHERE page > :after GROUP BY page ORDER BY page LIMIT :limit
