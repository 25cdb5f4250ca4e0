"""Label in a notebook cell, with buttons."""

from typing import TYPE_CHECKING, Any

from evalkit._html import render_macro
from evalkit.io import SourceError, plain
from evalkit.labels.session import ANSWERS, Session

if TYPE_CHECKING:
    import ipywidgets  # optional

HEIGHT = "30em"
LATER = "later"


def label_widget(session: Session) -> "ipywidgets.VBox":
    """Return a widget that shows one transcript after another, with buttons for the label and a field for a note.

    Each label is saved immediately. When the cell runs again, it continues with the units that have no label.

    Parameters
    ----------
    session : Session
        The person, the sample, and the file of labels.

    Returns
    -------
    ipywidgets.VBox
        The question, the transcript, the buttons and the field.

    Raises
    ------
    ImportError
        If the package ipywidgets is missing; the extra `lab` installs it.

    Examples
    --------
    >>> session = labels.Session(logs, "Did the agent verify its fix?", "mine.csv", who="me", number=20)
    >>> widget = labels.label_widget(session)
    """
    try:
        import ipywidgets
    except ImportError as error:
        raise ImportError("labels in a notebook need ipywidgets: pip install 'evalkit-agents[lab]'") from error
    question, note = ipywidgets.HTML(), ipywidgets.Text(placeholder="note")
    shown = ipywidgets.HTML(layout=ipywidgets.Layout(height=HEIGHT, overflow="auto", border="1px solid"))
    buttons = [ipywidgets.Button(description=name) for name in (*ANSWERS, LATER)]

    def show() -> None:
        done = f"{session.done} of {session.total} labelled"
        question.value = render_macro("parts.html.j2", "question", done, plain(session.question))
        note.value = ""
        for button in buttons:
            button.disabled = not session.left
        shown.value = ""
        try:
            if session.left:
                shown.value = session.transcript(session.left[0])._repr_html_()
        except SourceError as error:
            shown.value = render_macro("parts.html.j2", "paragraph", plain(f"can't be read: {error}"))

    def press(button: Any) -> None:
        if button.description == LATER:
            session.put_off()
        else:
            session.save(ANSWERS[button.description], note.value)
        show()

    for button in buttons:
        button.on_click(press)
    show()
    return ipywidgets.VBox([question, shown, ipywidgets.HBox([*buttons, note])])
