from .links import Evidence as Evidence
from .links import show_pairs as show_pairs
from .links import show_runs as show_runs
from .site import write_view as write_view

# isort: split
# The other packages of evalkit use these; they are not part of the public interface and may change.
from .links import EVIDENCE as EVIDENCE
from .references import RunList as RunList
from .references import RunRef as RunRef
from .references import page_name as page_name
from .references import read_references as read_references
from .references import reference as reference
from .site import write_pages as write_pages
