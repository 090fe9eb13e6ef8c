"""The terminal app in a page on 127.0.0.1, in a browser or in a window of its own."""
