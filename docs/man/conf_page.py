"""Puts the printed settings into mcpbox.conf.5.in.

usage: conf_page.py CONF_TEXT TEMPLATE OUTPUT
"""
import subprocess
import sys

settings = subprocess.check_output([sys.argv[1]], text=True).rstrip("\n")
with open(sys.argv[2], encoding="utf-8") as f:
    page = f.read().replace("@SETTINGS@", settings)
with open(sys.argv[3], "w", encoding="utf-8") as f:
    f.write(page)
