#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mete where: nodes of a file by the cluster query language, and this machine."""
import json

import support

NODES = {
    "A": {"ec2InstanceId": "i-1", "agentConnected": True, "agentVersion": "1.14.5", "registeredAt": "2018-02-12T23:59:59Z", "runningTasksCount": 0,
          "taskGroups": [], "attributes": {"stack": "prod", "ssd": None}},
    "B": {"ec2InstanceId": "i-2", "agentConnected": False, "agentVersion": "1.9.0", "registeredAt": "2018-06-18", "runningTasksCount": 3,
          "taskGroups": ["web", "db"], "attributes": {"stack": "test", "gpu.memory": "16G", "gpu.type": ["T4", "H200"], "gpu.count": 4}},
    "C": {},
}


class Where(support.MeteTest):
    def setUp(self):
        super().setUp()
        self.nodes = self.folder / "nodes.json"
        self.nodes.write_text(json.dumps(NODES))

    def match(self, expression):
        result = self.mete("where", expression, "--nodes", str(self.nodes), "-o", "json")
        self.assertEqual((result.returncode, result.stderr), (0, ""), expression)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "mete.where/1")
        return document["match"]

    def test_expressions(self):
        for expression, match in (
                ("attribute:stack == prod", ["A"]), ("attribute:stack != prod", ["B"]), ("not(attribute:stack == prod)", ["B", "C"]),
                ("attribute:ssd exists", ["A"]), ("attribute:ssd !exists", ["B", "C"]), ("agentVersion < 1.14", ["B"]),
                ("registeredAt > 2018-03-01 or agentConnected == true", ["A", "B"]), ("task:group != web", ["B"]),
                ("attribute:gpu.memory >= 16G and attribute:gpu.type == H200 && attribute:gpu.count > 3", ["B"]),
                ("runningTasksCount == 0", ["A"]), ("ec2InstanceId in [i-1, i-2]", ["A", "B"]), ("attribute:stack =~ 'p|t'", [])):
            self.assertEqual(self.match(expression), match, expression)

    def test_text(self):
        result = self.mete("where", "agentVersion >= 1", "--nodes", str(self.nodes))
        self.assertEqual((result.returncode, result.stdout), (0, "A\nB\n"))
        result = self.mete("where", "agentVersion >= 9", "--nodes", str(self.nodes))
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_bad_expressions(self):
        for expression in ("", "attribute:x", "colour == red", "agentVersion exists", "attribute:x =~ (", "attribute:x == " + "v" * 1990):
            self.assert_refused(self.mete("where", expression, "--nodes", str(self.nodes)), 64)
        result = self.mete("where", "attribute:x = v", "--nodes", str(self.nodes))
        self.assertIn("attribute:x = v\n", result.stderr)
        self.assertIn("\n              ^\n", result.stderr + "\n")
        for expression, below in (("attribute:x = v", "= v"), ("attribute:größe = v", "= v"), ("attribute:x\t= v", "= v"),
                                  ("attribute:" + "y" * 300 + " = v", "= v"), ("attribute:x =~ 'a[b' ", "' ")):
            shown, mark = self.mete("where", expression, "--nodes", str(self.nodes)).stderr.split("\n")[1:3]
            self.assertEqual(shown[mark.index("^"):], below, expression)
        self.assert_refused(self.mete("where", "attribute:x", "==", "v", "--nodes", str(self.nodes)), 64, "one expression")

    def test_bad_files(self):
        for text in ("", "[]", "{\"A\": 3}", "{\"A\": {\"registeredAt\": \"soon\"}}", "{\"A\": {\"attributes\": {\"x\": {}}}}"):
            self.nodes.write_text(text)
            self.assert_refused(self.mete("where", "attribute:x exists", "--nodes", str(self.nodes)), 65)
        self.assert_refused(self.mete("where", "attribute:x exists", "--nodes", str(self.folder / "none")), 65)


if __name__ == "__main__":
    support.main()
