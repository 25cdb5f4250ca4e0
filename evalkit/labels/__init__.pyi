from .answers import Majority as Majority
from .answers import majority as majority
from .answers import of_question as of_question
from .answers import read_labels as read_labels
from .sample import Unit as Unit
from .sample import draw as draw
from .session import Session as Session
