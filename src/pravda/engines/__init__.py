"""What observes pages."""
