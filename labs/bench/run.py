"""Runs one of the measurements: run.py MODE [PART] [flags]. scripts/bench starts the servers."""
import importlib
import sys

import tools

# By mode its parts, the first of which is meant when none is named, and the file of each.
MODES = {"compare": {"": "compare"}, "limits": {"": "limits"}, "size": {"": "size"}, "cards": {"": "cards"}, "cells": {"": "cells"},
         "pressure": {"disturbed": "disturbed", "beside": "beside", "idle": "idle", "watched": "watched"}}


def main():
    mode, words = sys.argv[1], sys.argv[2:]
    parts = MODES[mode]
    part = words.pop(0) if words and words[0] in parts else next(iter(parts))
    module = importlib.import_module(parts[part])
    parser = tools.parser_of(f"{mode} {part}".rstrip(), module.__doc__)
    module.flags(parser)
    module.main(tools.parse(parser, words))


main()
