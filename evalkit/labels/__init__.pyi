from . import figures as figures
from .answers import read_labels as read_labels
from .answers import read_verdicts as read_verdicts
from .judges import Comparison as Comparison
from .judges import compare_judges as compare_judges
from .judges import detector_verdicts as detector_verdicts
from .judges import differences as differences
from .judges import disagreements as disagreements
from .judges import findings as findings
from .judges import judge_table as judge_table
from .judges import label_plan as label_plan
from .judges import model_table as model_table
from .judges import next_units as next_units
from .judges import precision_recall as precision_recall
from .judges import verdicts_and_labels as verdicts_and_labels
from .sample import Unit as Unit
from .sample import draw as draw
from .session import Session as Session
from .widget import label_widget as label_widget

# isort: split
# Only commands and notebooks of evalkit use these; they are not part of the public interface and may change.
from .answers import Majority as Majority
from .answers import majority as majority
from .answers import of_question as of_question
from .judges import judges_to_show as judges_to_show
from .judges import people_agreement as people_agreement
from .page import write_page as write_page
