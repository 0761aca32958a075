"""Edge. The server of the page: routes, visitors and what they upload, long runs beside them, what is live."""
