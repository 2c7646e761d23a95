-- Which blobs rows name, in the order of their names: `verify` and `du` walk it beside the folder.
CREATE INDEX artifacts_by_blob ON artifacts (sha256, bytes) WHERE inline IS NULL;
