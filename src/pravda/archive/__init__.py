"""The append-only store: catalog rows and content-addressed blobs."""
