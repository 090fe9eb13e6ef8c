"""What MiniCPM5.app opens: the window, or the user's terminal; one at a time."""
