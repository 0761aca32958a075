"""Edge. What a program calls: read files into values, ask a question, get a value with its reasons."""
