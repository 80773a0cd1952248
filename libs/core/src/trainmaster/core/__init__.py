"""The words of Trainmaster: events, job states, subjects, ids, errors."""
