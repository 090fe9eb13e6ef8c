"""Taking back what a turn with tools did to files: without git, and the taking back as well.

`scan.py` sees what is there, `copies.py` keeps contents by their digest, `history.py` keeps the
turns, `restore.py` puts things back. No link is ever followed.
"""
