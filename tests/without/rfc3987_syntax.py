"""An optional package of jsonschema that nothing needs: building its grammar takes two seconds in each process.

This folder is on the path of all programs that tests start, which then find no such package.
"""

raise ImportError("left out in tests")
