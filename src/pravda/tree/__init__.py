"""The snapshot tree: verbatim pages in a folder under git, refreshed politely."""
