#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every document of tests/data/documents is valid by its schema in docs/formats, and every field of a job is in one of them.

NAME-what.json goes by NAME.schema.json. wire_test writes the same documents, so a field that the code writes and the
schema does not have, or has otherwise, shows here without a daemon. A job is the same in every schema that has one, and so
are a wait, a card and an event.

tests/data/fields.txt has the fields of every list in src/wire (wire_test compares). Each list and its schema, or its request in
openapi.yaml, have the same fields at every depth, and api.md names every field of a request.
"""
import json
import pathlib
import sys
import tempfile

import common
import jsonschema
import yaml


def load(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def job_of(schema: dict) -> dict:
    """The properties of a job in a schema of ps, wait or show."""
    top = schema["properties"]
    return (top["job"] if "job" in top else top["jobs"]["items"])["properties"]


OF_OTHERS = {"ended_pid"}  # written by `mete daemon stop`


class Schemas:
    """The fields that schemas name, as tests/data/fields.txt writes them."""

    def __init__(self, formats: pathlib.Path):
        self.formats = formats
        self.files = {"openapi.yaml": yaml.safe_load((formats / "openapi.yaml").read_text(encoding="utf-8"))}

    def at(self, ref: str, file: str) -> tuple[dict, str]:
        """What FILE#/POINTER refers to, and the file that it is in."""
        name, _, pointer = ref.partition("#")
        file = name or file
        if file not in self.files:
            self.files[file] = load(self.formats / file)
        node = self.files[file]
        for word in pointer.split("/")[1:]:
            node = node[word]
        return node, file

    def fields(self, node: dict, file: str, path: str = "") -> set[str]:
        if "$ref" in node:
            return self.fields(*self.at(node["$ref"], file), path)
        found = set()
        for part in [node["items"]] if isinstance(node.get("items"), dict) else []:
            found |= self.fields(part, file, path)
        for part in node.get("anyOf", []) + node.get("allOf", []) + node.get("oneOf", []):
            found |= self.fields(part, file, path)
        for name, part in node.get("properties", {}).items():
            found |= {path + name} | self.fields(part, file, path + name + ".")
        return found


def unlike_the_lists(root: pathlib.Path) -> list[str]:
    """What the lists of src/wire have otherwise than docs/formats."""
    formats, findings, lists = root / "docs" / "formats", [], {}
    for line in (root / "tests" / "data" / "fields.txt").read_text(encoding="utf-8").splitlines():
        name, field = line.split(" ")
        lists.setdefault(name, set()).add(field)
    schemas, api = Schemas(formats), (formats / "api.md").read_text(encoding="utf-8")
    for name, fields in sorted(lists.items()):
        of_request = name[0].isupper()  # or of an answer to a runner: in openapi.yaml
        ref = f"openapi.yaml#/components/schemas/{name}" if of_request else f"{name}.schema.json"
        theirs = {field for field in schemas.fields(*schemas.at(ref, "")) if not field.endswith(".hex")} - OF_OTHERS
        findings += [f"docs/formats/{ref}: {field} is in no list of src/wire" for field in sorted(theirs - fields)]
        findings += [f"docs/formats/{ref}: the list in src/wire has {field}" for field in sorted(fields - theirs)]
        if name.endswith("Request"):
            words = {field: field.rsplit(".", 1)[-1] for field in sorted(fields)}
            findings += [f"docs/formats/api.md: {field} of {name} is not in it" for field, word in words.items()
                         if f'"{word}"' not in api and f"`{word}`" not in api]
    return findings


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
    waits = load(formats / "ps.schema.json")["$defs"]
    for other in ("park", "wait", "show", "snapshot", "explain", "dry-run"):
        theirs = load(formats / f"{other}.schema.json")["$defs"]
        findings += [f"docs/formats/{other}.schema.json: {name} is not as in ps.schema.json"
                     for name, shape in waits.items() if theirs.get(name) != shape]
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
    return len(documents), findings + unlike_the_lists(root)


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
        lists = (source / "tests" / "data" / "fields.txt").read_text().replace("QuotaRequest user\n", "")
        (root / "tests" / "data" / "fields.txt").write_text(lists + "submit new\nJobRequest shedding\n")
        return common.expect(look(root)[1], ["submit-one.json: $.id", "submit-array.json: $: Additional properties",
                                             "wait-two.json: $.jobs: 7", "no document of tests/data/documents has advice",
                                             "QuotaRequest: user is in no list", "submit.schema.json: the list in src/wire has new",
                                             "api.md: shedding of JobRequest"],
                             ["show-pending.json", "is not as in ps.schema.json"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("documents", *look(common.source_dir())))
