"""Results as tables, JSON, pictures and pages."""
