#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every document of tests/data/documents is valid by its schema in docs/formats, and every field of a job is in one of them.

NAME-what.json goes by NAME.schema.json. wire_test writes the same documents, so a field that the code writes and the
schema does not have, or has otherwise, shows here without a daemon. A job is the same in every schema that has one, and so
are a card and an event.
"""
import json
import pathlib
import sys
import tempfile

import common
import jsonschema


def load(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def job_of(schema: dict) -> dict:
    """The properties of a job in a schema of ps, wait or show."""
    top = schema["properties"]
    return (top["job"] if "job" in top else top["jobs"]["items"])["properties"]


def look(root: pathlib.Path) -> tuple[int, list[str]]:
    """How many documents there are, and what is wrong."""
    formats = root / "docs" / "formats"
    findings, used = [], set()
    documents = sorted((root / "tests" / "data" / "documents").glob("*.json"))
    for path in documents:
        name = path.relative_to(root)
        schema = load(formats / f"{path.name.rsplit('-', 1)[0]}.schema.json")
        document = load(path)
        for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
            findings.append(f"{name}: {error.json_path}: {error.message}")
        jobs = document.get("jobs") or [document.get("job")]
        used |= {field for job in jobs if isinstance(job, dict) for field in job} if isinstance(jobs, list) else set()
    one = job_of(load(formats / "ps.schema.json"))
    for other in ("wait", "show", "snapshot"):
        theirs = job_of(load(formats / f"{other}.schema.json"))
        for field, shape in one.items():
            if theirs.get(field) != shape:
                findings.append(f"docs/formats/{other}.schema.json: {field} is not as in ps.schema.json")
        for field in sorted(theirs.keys() - used):
            findings.append(f"docs/formats/{other}.schema.json: no document of tests/data/documents has {field}")
    cards, snapshot, daemon = (load(formats / f"{name}.schema.json")["properties"] for name in ("cards", "snapshot", "daemon"))
    if cards["cards"]["items"] != snapshot["cards"]["items"]:
        findings.append("docs/formats/snapshot.schema.json: a card is not as in cards.schema.json")
    event, listed = (load(formats / f"{name}.schema.json")["properties"] for name in ("event", "events"))
    for field, shape in listed["events"]["items"]["properties"].items():
        if event.get(field) != shape:
            findings.append(f"docs/formats/events.schema.json: {field} is not as in event.schema.json")
    for field, shape in snapshot["daemon"]["properties"].items():
        if daemon.get(field) != shape:
            findings.append(f"docs/formats/snapshot.schema.json: {field} is not as in daemon.schema.json")
    return len(documents), findings


def selftest() -> int:
    source = common.source_dir()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "docs" / "formats").symlink_to((source / "docs" / "formats").resolve())
        documents = root / "tests" / "data" / "documents"
        documents.mkdir(parents=True)
        for path in (source / "tests" / "data" / "documents").glob("*.json"):
            (documents / path.name).write_bytes(path.read_bytes())
        for name, change in (("submit-one.json", {"id": 12}), ("submit-array.json", {"new": True}), ("wait-two.json", {"jobs": 7})):
            (documents / name).write_text(json.dumps({**load(documents / name), **change}))
        (documents / "show-ended.json").unlink()
        return common.expect(look(root)[1], ["submit-one.json: $.id", "submit-array.json: $: Additional properties",
                                             "wait-two.json: $.jobs: 7", "no document of tests/data/documents has advice"],
                             ["show-pending.json", "is not as in ps.schema.json"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("documents", *look(common.source_dir())))
