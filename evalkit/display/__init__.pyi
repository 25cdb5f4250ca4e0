from . import plots as plots
from .drawing import MARKERS as MARKERS
from .drawing import PALETTE as PALETTE
from .drawing import TONES as TONES
from .drawing import Look as Look
from .drawing import keep_looks as keep_looks
from .drawing import looks as looks
from .drawing import new_axes as new_axes
from .drawing import nothing_to_draw as nothing_to_draw
from .drawing import percent_axis as percent_axis
from .drawing import set_alt as set_alt
from .follow import Following as Following
from .follow import Snapshot as Snapshot
from .show import headline as headline
from .show import provenance as provenance
from .show import publish as publish
from .show import show_answer as show_answer
from .show import show_details as show_details
from .show import show_figure as show_figure
from .show import show_findings as show_findings
from .show import show_table as show_table
from .show import show_text as show_text

# isort: split
# The other packages of evalkit use these; they are not part of the public interface and may change.
from .drawing import alt_of as alt_of
from .drawing import attach as attach
from .drawing import with_zero as with_zero
from .plots import describe_curves as describe_curves
from .plots import describe_estimates as describe_estimates
from .words import finding_text as finding_text
from .words import pair_text as pair_text
