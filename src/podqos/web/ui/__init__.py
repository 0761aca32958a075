"""Edge. The server of the page: routes, visitors and their uploads, background runs, live updates."""
