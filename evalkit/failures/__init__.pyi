from . import figures as figures
from .answers import findings as findings
from .contrasts import contrast as contrast
from .contrasts import divergences as divergences
from .failure_modes import error_groups as error_groups
from .failure_modes import event_counts as event_counts
from .failure_modes import failed_runs as failed_runs
from .failure_modes import mode_shares as mode_shares
from .failure_modes import modes as modes
from .search import detector as detector
from .search import events as events

# isort: split
# Only commands and notebooks of evalkit use these; they are not part of the public interface and may change.
from .answers import describe_rule as describe_rule
from .answers import headline as headline
from .answers import loops as loops
from .answers import reasons as reasons
from .answers import with_leading_mode as with_leading_mode
from .answers import with_main_reason as with_main_reason
from .failure_modes import with_modes as with_modes
from .search import detectors as detectors
from .terminal import describe_failures as describe_failures
