# SPDX-License-Identifier: Apache-2.0
"""Two programs, one without the meter and one under a cap, that are asked line by line and in turn, so that whatever slows
the machine or the card slows both. Each answers a line with rows `cost <tab> name <tab> nanoseconds` and then `done`.
With `again` a second one without the meter: how far two that are the same differ."""
import subprocess
import threading


class Turns:
    LIMIT_S = 300  # a program that does not answer is ended

    def __init__(self, without, inside, env, again=False):
        commands = {"without": without, "with": inside, **({"again": without} if again else {})}
        self.programs = {label: subprocess.Popen(list(map(str, command)), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                 stderr=subprocess.DEVNULL, text=True) for label, command in commands.items()}
        self.watchdog = threading.Timer(self.LIMIT_S, self.end)
        self.count = 0

    def __enter__(self):
        self.watchdog.start()
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        self.end()

    def end(self):
        for program in self.programs.values():
            if program.poll() is None:
                program.kill()
            program.wait()

    def collect(self, line, seen):
        """Asks them all, in an order that changes; adds their rows to seen[name]["with", "without" or "again"]."""
        self.count += 1
        labels = sorted(self.programs, reverse=self.count % 2 == 0)
        for label in labels[self.count % len(labels):] + labels[:self.count % len(labels)]:
            program = self.programs[label]
            program.stdin.write(line + "\n")
            program.stdin.flush()
            while (answer := program.stdout.readline()) != "done\n":
                fields = answer.rstrip("\n").split("\t")
                if fields[0] != "cost":
                    raise RuntimeError(f"{label} the meter, asked to {line}: {answer!r}")
                seen.setdefault(fields[1], {}).setdefault(label, []).append(float(fields[2]))

    def last(self, word):
        """Ends both; the set of what they said after that word at last."""
        texts = [program.communicate()[0] for program in self.programs.values()]
        return {line.split(" ", 1)[1] for text in texts for line in text.splitlines() if line.startswith(word + " ")}
