"""The schema as mcpbox-admind has it: number 1 is sql/schema, in the order of
admind/meson.build; from 2 on they are sql/migrations."""
import re

from harness.pg import ROOT


def migrations():
    """[(name, bytes)], from number 1 on."""
    text = (ROOT / "admind/meson.build").read_text()
    names = re.findall(r"'\.\./sql/schema/(\w+\.sql)'", text)
    assert sorted(names) == sorted(p.name for p in (ROOT / "sql/schema").glob("*.sql"))
    schema = b"".join((ROOT / "sql/schema" / n).read_bytes() for n in names)
    later = sorted((ROOT / "sql/migrations").glob("*.sql"))
    return [("schema", schema), *((p.stem[5:], p.read_bytes()) for p in later)]
