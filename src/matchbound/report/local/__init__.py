"""The report in a browser, from a page on this machine that takes a file and sends nothing anywhere."""
