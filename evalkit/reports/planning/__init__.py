"""What reports are to be made: notebooks, parameters and sources become a checked list of reports."""
