"""Figures by name."""


class Values(dict):
    """name -> values of the rounds."""

    def add(self, name, value):
        self.setdefault(name, []).append(value)

    def times(self, name, r):
        for key in ("p50", "p99", "rate"):
            self.add(f"{name} {key}", r[key])
