# SPDX-License-Identifier: Apache-2.0
"""The table of results that is kept in the tree: one line a mutation, columns split by tabs.

An outcome is "killed by TEST", "lived" or "equivalent: REASON"; "lived: REASON" is a survivor that somebody looked at.
Reasons are written by hand, and stay as long as the mutation lives.
"""
import dataclasses
import fcntl
import os

COLUMNS = ["id", "folder", "file", "line", "mutation", "outcome"]


@dataclasses.dataclass
class Row:
    id: str
    folder: str
    file: str
    line: str
    mutation: str
    outcome: str

    @property
    def verdict(self):
        """killed, lived or equivalent."""
        return self.outcome.split(" ")[0].rstrip(":")

    @property
    def reason(self):
        return self.outcome.partition(": ")[2] if self.verdict != "killed" else ""


class Table:
    def __init__(self, path):
        self.path = path
        self.changes = {}  # Since the last save: id -> Row, or None for one that went.
        self.rows = self.read()

    def read(self):
        rows = {}
        for n, line in enumerate(self.path.read_text().splitlines() if self.path.exists() else [], 1):
            cells = line.split("\t")
            if len(cells) != len(COLUMNS):
                raise ValueError(f"{self.path}:{n}: {len(cells)} columns, expected {len(COLUMNS)}")
            if cells != COLUMNS:
                rows[cells[0]] = Row(*cells)
        return rows

    def of(self, folder):
        return [r for r in self.rows.values() if r.folder == folder]

    def set(self, folder, mutation, outcome):
        """Takes an outcome; one that lived again keeps the reason that is written beside it."""
        old = self.rows.get(mutation.id)
        if old and old.reason and outcome == "lived":
            outcome = old.outcome
        self.changes[mutation.id] = self.rows[mutation.id] = Row(mutation.id, folder, mutation.file, " ".join(mutation.text.split()),
                                     f"{mutation.kind}: {mutation.what}", outcome)

    def forget_gone(self, folder, ids):
        """Drops the folder's rows whose line is no longer in the tree."""
        gone = [r.id for r in self.of(folder) if r.id not in ids]
        for i in gone:
            del self.rows[i]
            self.changes[i] = None
        return len(gone)

    def save(self):
        """Writes the changes into the file, which another run may have changed meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.rows = {**self.read(), **self.changes}
            self.rows = {i: r for i, r in self.rows.items() if r}
            self.write()
            self.changes = {}
        finally:
            os.close(folder)

    def write(self):
        rows = sorted(self.rows.values(), key=lambda r: (r.folder, r.file, r.line, r.mutation, r.id))
        text = "\n".join("\t".join(c) for c in [COLUMNS, *(list(dataclasses.astuple(r)) for r in rows)]) + "\n"
        new = self.path.with_name(self.path.name + ".new")
        new.write_text(text)
        os.replace(new, self.path)


def summary(table, folders):
    """Lines of text: killed, lived, equivalent and the rate of those that could be killed."""
    lines = [f"{'folder':<20} {'killed':>7} {'lived':>6} {'equivalent':>11} {'rate':>6}"]
    for folder in folders:
        counts = {"killed": 0, "lived": 0, "equivalent": 0}
        for r in table.of(folder):
            counts[r.verdict] += 1
        judged = counts["killed"] + counts["lived"]
        rate = f"{100 * counts['killed'] / judged:.0f} %" if judged else "-"
        lines.append(f"{folder:<20} {counts['killed']:>7} {counts['lived']:>6} {counts['equivalent']:>11} {rate:>6}")
    return lines
