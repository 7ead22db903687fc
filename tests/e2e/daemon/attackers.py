# SPDX-License-Identifier: Apache-2.0
"""What a hostile user sends to the daemon's socket. Runs as that user: attackers.py SOCKET KIND SEED SECONDS.

Each kind is a generator of traffic that ends by itself: at most SECONDS, with a bounded number of connections. The
closing line is JSON: how many answers came by status, and the ids of jobs that the daemon acknowledged. An answer that
is not HTTP, or a status of 500, is a fault of the daemon and is listed under "faults"."""
import json
import random
import socket
import sys
import time

CONNECTIONS = 200


def request(method, path, body=b"", headers=()):
    lines = [f"{method} {path} HTTP/1.1", "Host: mete", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Attacker:
    def __init__(self, path, seed, seconds):
        self.path, self.dice = path, random.Random(seed)
        self.end = time.monotonic() + seconds
        self.statuses, self.acknowledged, self.faults = {}, [], []

    def over(self):
        return time.monotonic() > self.end

    def connect(self):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(max(0.1, min(20, self.end - time.monotonic())))
        try:
            link.connect(self.path)
        except OSError:  # the daemon is dead, full or busy: expected here
            link.close()
            self.count("no connection")
            time.sleep(0.02)
            return None
        return link

    def count(self, what):
        self.statuses[what] = self.statuses.get(what, 0) + 1

    def answer(self, link):
        """Status and body of one answer; None when the connection ended or nothing came."""
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                piece = link.recv(65536)
                if not piece:
                    return None
                data += piece
            head, body = data.split(b"\r\n\r\n", 1)
            status = int(head.split()[1])
            length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                           if line.lower().startswith(b"content-length:")), 0)
            while len(body) < length:
                piece = link.recv(65536)
                if not piece:
                    return None
                body += piece
        except (ValueError, IndexError):
            self.faults.append("no HTTP: " + repr(data[:80]))
            return None
        except OSError:
            self.count("cut or late")
            return None
        self.count(status)
        if status == 500:
            self.faults.append(body[:300].decode(errors="replace"))
        return status, body

    def ask(self, data):
        link = self.connect()
        if link is None:
            return None
        try:
            link.sendall(data)
            return self.answer(link)
        except OSError:
            self.count("cut or late")
            return None
        finally:
            link.close()

    # ---- valid requests with random content ----

    def text(self, most):
        kinds = ("plain", "\u00e9\u4e2d\U0001f600", "\u009b31m", "\u202e\u2066", "\x01\x7f\t\n", "'\"\\$`;|&")
        return "".join(self.dice.choice(self.dice.choice(kinds)) for _ in range(self.dice.randrange(most)))

    def word(self, most):
        """As a request writes a word: text, or bytes that are no UTF-8."""
        if self.dice.random() < 0.1:
            return {"hex": bytes(self.dice.randrange(1, 256) for _ in range(1 + self.dice.randrange(most))).hex()}
        return self.text(most)

    def submit_body(self):
        dice = self.dice
        asked = {"gpu": dice.choice(["0", "1", "all", "40%", "8G", "1G..4G", "2x10%", "0.001", "allx1G"])}
        if dice.random() < 0.2:
            asked["procs"] = dice.randrange(1, 9)
        job = {"name": self.text(40), "command": ["true"] + [self.word(200) for _ in range(dice.randrange(4))], "cwd": "/tmp",
               "request": asked, "held": dice.random() < 0.8, "detached": {"umask": dice.randrange(512)}}
        if dice.random() < 0.1:
            job["command"].append("x" * dice.randrange(1, 120_000))
        if dice.random() < 0.2:
            job["array"] = dice.choice(["0-9", "1-50%3", "7,5,3", "0-999"])
        if dice.random() < 0.2:
            job["labels"] = {f"k{n}": self.text(60) for n in range(dice.randrange(5))}
        if dice.random() < 0.2:
            job["after"] = [{"id": str(dice.randrange(1, 40)), "when": dice.choice(["ok", "any", "fail"])}]
        if dice.random() < 0.2:
            job["time_s"] = dice.choice([1, 60, 1 << 31])
        if dice.random() < 0.2:
            job["priority"] = -dice.randrange(1000)
        environment = [f"V{n}={self.text(80)}" for n in range(dice.randrange(6))]
        if dice.random() < 0.1:
            environment.append("BIG=" + "y" * dice.randrange(1, 200_000))
        return {"job": job, "environment": environment}

    def accepted(self):
        """Valid submits, so that any content reaches the engine; then verbs on what was taken."""
        while not self.over():
            reply = self.ask(request("POST", "/v1/jobs", json.dumps(self.submit_body()).encode()))
            if reply and reply[0] == 201:
                self.acknowledged.append(json.loads(reply[1])["id"])
            for verb in self.dice.sample(["hold", "release", "requeue", "show", "explain", "wait?any=1"], 2):
                if self.acknowledged and verb in ("show", "explain"):
                    self.ask(request("GET", f"/v1/jobs/{self.dice.choice(self.acknowledged)}/{verb}"))
                elif self.acknowledged and "wait" not in verb:
                    self.ask(request("POST", f"/v1/jobs/{self.dice.choice(self.acknowledged)}/{verb}"))
            while len(self.acknowledged) > 200:
                self.ask(request("DELETE", "/v1/jobs/" + self.acknowledged.pop(0)))

    # ---- everything else ----

    def mutated(self):
        """Valid requests with some bytes changed, cut or doubled."""
        while not self.over():
            data = bytearray(request("POST", self.dice.choice(["/v1/jobs", "/v1/try"]), json.dumps(self.submit_body()).encode()))
            for _ in range(self.dice.randrange(1, 6)):
                at = self.dice.randrange(len(data))
                self.dice.choice([lambda: data.__setitem__(at, self.dice.randrange(256)), lambda: data.__delitem__(slice(at, at + 3)),
                                  lambda: data.insert(at, self.dice.randrange(256))])()
            link = self.connect()
            if link is None:
                continue
            try:
                link.settimeout(0.2)  # a request that was cut is never answered
                link.sendall(bytes(data))
                reply = self.answer(link)
                if reply and reply[0] == 201:
                    self.acknowledged.append(json.loads(reply[1])["id"])
            except OSError:
                self.count("cut or late")
            finally:
                link.close()

    def many(self, data):
        """That request on many connections at once, none of which reads its answer."""
        links = []
        while not self.over():
            link = self.connect()
            if link is None:
                continue
            try:
                link.sendall(data)
                links.append(link)
            except OSError:
                link.close()
            if len(links) >= CONNECTIONS:
                for old in links[:CONNECTIONS // 2]:
                    old.close()
                del links[:CONNECTIONS // 2]
            self.count("sent")
        for link in links:
            link.close()

    def tries(self):
        body = self.submit_body()
        body["job"].update(array="0-49999", held=False, request={"gpu": "1G"}, command=["true"])
        self.many(request("POST", "/v1/try", json.dumps(body).encode()))

    def lists(self):
        self.many(request("GET", "/v1/jobs?all=1"))

    def slow(self):
        """Headers that never end, bodies that never come."""
        self.many(b"POST /v1/jobs HTTP/1.1\r\nHost: mete\r\nContent-Length: 1000000\r\n" + self.dice.choice([b"", b"\r\n{"]))

    def noise(self):
        while not self.over():
            link = self.connect()
            if link is None:
                continue
            try:
                link.settimeout(0.05)
                link.sendall(self.dice.randbytes(self.dice.randrange(1, 5000)))
                link.recv(4096)
            except OSError:
                pass
            link.close()
            self.count("sent")


KINDS = ("accepted", "mutated", "tries", "lists", "slow", "noise")

if __name__ == "__main__":
    attacker = Attacker(sys.argv[1], int(sys.argv[3]), float(sys.argv[4]))
    getattr(attacker, sys.argv[2])()
    print(json.dumps({"statuses": attacker.statuses, "acknowledged": attacker.acknowledged, "faults": attacker.faults}))
