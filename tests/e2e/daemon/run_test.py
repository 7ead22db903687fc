#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete run`: waits its turn, gets its card, runs as if typed alone."""
import json
import os
import pty
import signal
import sqlite3
import subprocess
import unittest

from world import ACTOR, BOUND_S, CAPACITY, DaemonTest, GIB, METE, MIB, wait_until


class OneCard(DaemonTest):
    def test_runs_and_returns_the_programs_code(self):
        for code in (0, 1, 42):
            self.assertEqual(self.run_("-q", "--gpu", "0.4", "--", "sh", "-c", f"exit {code}").returncode, code)
        result = self.run_("-q", "--gpu", "0.4", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(result.returncode, 137)
        outcomes = [(job["outcome"], job.get("exit_code"), job.get("signal")) for job in self.jobs()]
        self.assertEqual(outcomes, [("ok", 0, None), ("failed", 1, None), ("failed", 42, None), ("signal", None, 9)])
        self.assert_nothing_left()

    def test_the_program_sees_its_share(self):
        result = self.run_("--gpu", "40%", "--", ACTOR, "init,retain 0,info")
        self.assertEqual(result.returncode, 0, result.stderr)
        share = CAPACITY["H200"] * 400 // 1000 // (2 * MIB) * 2 * MIB
        self.assertIn(f"job 1: {share * 100 // GIB / 100:.2f} GiB", result.stderr)
        self.assertIn(f"({share} bytes) on card 0 (NVIDIA H200)", result.stderr)
        self.assertIn(str(share), result.stdout.split("\n")[2])

    def test_the_environment_of_a_job(self):
        result = self.run_("-q", "--gpu", "8G", "--env", "X=y", "--", "env")
        lines = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
        self.assertEqual(lines["METE_JOB_ID"], "1")
        self.assertEqual(lines["METE_ATTEMPT"], "1")
        self.assertEqual(lines["METE_GPU_MEM_BYTES"], str(8 * GIB))
        self.assertEqual(lines["CUDA_VISIBLE_DEVICES"], self.card()["uuid"])
        self.assertEqual(lines["X"], "y")
        self.assertTrue(lines["METE_GRANT"].endswith("/grants/1.1"))
        self.assertNotIn("METE_READY_FD", lines)

    def test_waits_for_its_turn_and_says_for_what(self):
        first = self.holder("60%")
        second = self.start_run("--gpu", "60%", "--", "echo", "second")
        line = second.stderr.readline()
        self.assertRegex(line, r"^mete: waiting, next in the queue; for 60% of one card; card 0: .* free of the .* needed, .*'s job 1 holds")
        job = self.job(2)
        self.assertEqual((job["state"], job["reason"]), ("pending", "resources"))
        self.assertEqual(job["wait"]["holders"], ["1"])
        self.release(first)
        out, err = second.communicate(timeout=BOUND_S)
        self.assertEqual((second.returncode, out), (0, "second\n"))
        self.assertNotRegex(err, "[\x00-\x08\x0b-\x1f]", "no control characters without a terminal")
        self.assert_nothing_left()

    def test_three_share_a_card_and_the_fourth_waits(self):
        holders = [self.holder("30%") for _ in range(3)]
        self.assertEqual(self.card()["granted_bytes"], 3 * (CAPACITY["H200"] * 300 // 1000 // (2 * MIB) * 2 * MIB))
        fourth = self.start_run("-q", "--gpu", "30%", "--", "true")
        self.wait_state(4, "pending")
        self.release(holders[1], 3)
        self.assertEqual(fourth.wait(BOUND_S), 0)
        for process in (holders[0], holders[2]):
            self.release(process)
        self.assert_nothing_left()

    def test_no_wait(self):
        holder = self.holder("60%")
        self.assert_refused(self.run_("--no-wait", "--gpu", "60%", "--", "true"), 75, "there is no room now", "job 1")
        self.assertEqual(self.run_("-q", "--no-wait", "--gpu", "30%", "--", "true").returncode, 0)
        self.release(holder)

    def test_a_dry_run_says_what_would_happen_and_makes_no_job(self):
        said = self.run_("--gpu", "60%", "--dry-run")
        share = CAPACITY["H200"] * 600 // 1000 // (2 * MIB) * 2 * MIB
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual(said.stdout, f"would start now on card 0 with {share * 100 // GIB / 100:.2f} GiB\n")
        holder = self.holder("60%")
        said = self.run_("--gpu", "60%", "--dry-run", "--", "python", "train.py")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stdout, r"^would wait: resources · 1st of 1 in the queue · ")
        self.assertIn("would start now  with --gpu ", said.stdout)
        self.assertNotIn("mete priority", said.stdout, "there is no job to say that of")
        document = self.document("dry-run", "run", "--gpu", "60%", "--dry-run")
        self.assertEqual((document["starts"], document["grant"], document["place"]), (False, [], 1))
        self.assertEqual(document["cards"][0]["holders"][0]["id"], "1")
        self.assertEqual(self.run_("--gpu", "0", "--dry-run").stdout, "would start now without a card\n")
        self.assertEqual(self.run_("--gpu", "60%", "--no-wait", "--dry-run").returncode, 75)
        self.assertEqual(self.run_("--gpu", "9", "--dry-run").returncode, 69)
        self.assertEqual(self.run_("--dry-run").returncode, 64)
        self.assertEqual([job["id"] for job in self.jobs()], ["1"])
        self.release(holder)

    def test_can_never_fit(self):
        self.assert_refused(self.run_("--gpu", "200G", "--", "true"), 69, "can never fit", "--gpu 139.7G would fit")
        self.assert_refused(self.run_("--gpu", "2", "--", "true"), 69)
        self.assert_refused(self.run_("--gpu", "8G", "--gpu-type", "A100", "--", "true"), 69, "H200")
        self.assertEqual(self.jobs(), [])

    def test_words_that_are_wrong(self):
        self.assert_refused(self.run_("--gpu", "1.5", "--", "true"), 64)
        self.assert_refused(self.run_("--gpu", "8G"), 64, "no program")
        self.assert_refused(self.run_("--", "true"), 64, "--gpu")
        self.assert_refused(self.run_("--gpu", "8G", "--time", "soon", "--", "true"), 64, "duration")
        self.assert_refused(self.run_("--gpu", "8G", "--procs", "0", "--", "true"), 64)
        self.assert_refused(self.run_("--gpu", "8G..9G", "--procs", "2", "--", "true"), 64, "no even parts")
        self.assert_refused(self.run_("--gpu", "8G", "--preemptible", "--exec", "--", "true"), 64, "no process is left")
        self.assert_refused(self.run_("--gpu", "8G", "--exec", "--time", "5", "--", "true"), 64, "--exec")
        self.assertIsNone(self.daemon_pid(), "a typing mistake starts nothing")

    def test_a_program_that_cannot_be_run(self):
        self.assert_refused(self.run_("-q", "--gpu", "8G", "--", "/no/such/program"), 127)
        self.assert_refused(self.run_("-q", "--gpu", "8G", "--", "/"), 126)
        self.assert_refused(self.run_("-q", "--gpu", "8G", "--chdir", "/no/such/folder", "--", "true"), 125)
        self.assertEqual([job["outcome"] for job in self.jobs()], ["launch-failed"] * 3)
        self.assert_nothing_left()

    def test_time_limit(self):
        result = self.run_("-q", "--gpu", "8G", "--time", "1s", "--", "sleep", "100")
        self.assertEqual(result.returncode, 124)
        self.assertIn("time limit", result.stderr)
        self.assertEqual(self.job(1)["outcome"], "timeout")
        self.assert_nothing_left()

    def test_out_of_memory_is_named(self):
        result = self.run_("-q", "--gpu", "2G", "--", "sh", "-c", f"{ACTOR} 'init,retain 0,take alloc 4G'; exit 3")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"refused GPU memory 1 time: its cap on card 0 is 2 GiB, its peak was")
        job = self.job(1)
        self.assertEqual(job["outcome"], "gpu-oom")
        self.assertGreater(job["grant"][0]["peak_bytes"], 500 * MIB)

    def test_cpu_only_and_or_cpu(self):
        result = self.run_("-q", "--cpu-only", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES:$METE_GRANT")
        self.assertEqual(result.stdout, "-1:\n")
        holder = self.holder("1")
        result = self.run_("--gpu", "8G", "--or-cpu", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.assertEqual((result.returncode, result.stdout), (0, "-1\n"), result.stderr)
        self.assertIn("no GPU", result.stderr)
        self.release(holder)

    def test_the_grant_ends_with_the_last_process(self):
        """The leader exits first; what it left behind still holds its share."""
        run = self.start_run("-q", "--gpu", "60%", "--", "sh", "-c", "sh -c 'read x < /dev/tty' 2>/dev/null; sleep 1000 & echo $!")
        left = int(run.stdout.readline())
        self.assertIsNone(run.poll())
        self.assertGreater(self.card()["granted_bytes"], 0)
        os.kill(left, signal.SIGKILL)
        self.assertEqual(run.wait(BOUND_S), 0)
        self.assert_nothing_left()

    def test_exec_becomes_the_program(self):
        run = self.start_run("-q", "--exec", "--gpu", "8G", "--", "sh", "-c", "echo $$; read x", stdin=subprocess.PIPE)
        self.assertEqual(int(run.stdout.readline()), run.pid)
        self.wait_state(1, "running")
        run.stdin.close()
        run.stdin = None
        self.assertEqual(run.wait(BOUND_S), 1)
        self.wait_state(1, "ended")
        self.assertEqual(self.job(1)["outcome"], "unknown")
        self.assertNotIn("exit_code", self.job(1))
        self.assertEqual(self.card()["granted_bytes"], 0)
        self.document("ps", "ps", "-a")
        self.assert_refused(self.run_("-q", "--exec", "--gpu", "8G", "--", "/no/such/program"), 127)

    def test_nested_runs_are_refused(self):
        result = self.run_("-q", "--gpu", "8G", "--", METE, "run", "--gpu", "1G", "--", "true")
        self.assertEqual(result.returncode, 64)
        self.assertIn("already inside a mete job", result.stderr)

    def test_the_daemon_says_its_versions(self):
        self.run_("-q", "--cpu-only", "--", "true")  # starts it
        status, said = self.api("/v1/version")
        ours = json.loads(self.mete("version", "-o", "json").stdout)
        self.assertEqual((status, said["api"], said["version"]), (200, 1, ours["version"]))
        self.assertEqual(said["grant_abi"], ours["grant_abi"])
        status, refused = self.api("/v2/version")
        self.assertEqual((status, refused["error"]["code"]), (501, "unsupported"))
        self.mete("daemon", "stop")  # while it runs, the database is its own
        database = sqlite3.connect(f"file:{self.folder}/sim/meted.db?mode=ro", uri=True)
        self.addCleanup(database.close)
        self.assertEqual(said["store"], database.execute("PRAGMA user_version").fetchone()[0])

    def test_json(self):
        result = self.run_("-o", "json", "--gpu", "8G", "--", "true")
        document = json.loads(result.stderr)
        self.assertEqual(document["schema"], "mete.run/1")
        self.assertEqual(document["cards"][0]["bytes"], 8 * GIB)
        result = self.run_("-o", "json", "--gpu", "200G", "--", "true")
        self.assertEqual(json.loads(result.stderr)["error"]["exit"], 69)


class Signals(DaemonTest):
    def test_interrupt_while_waiting_leaves_the_line(self):
        holder = self.holder("1")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            waiting = self.start_run("--gpu", "8G", "--", "true")
            waiting.stderr.readline()
            waiting.send_signal(number)
            self.assertEqual(waiting.wait(BOUND_S), code)
        wait_until(lambda: [job["state"] for job in self.jobs()][1:] == ["ended", "ended"], "the place in the queue is gone")
        self.assertEqual(self.job(2)["outcome"], "cancelled")
        self.release(holder)

    def test_a_signal_reaches_the_program(self):
        run = self.start_run("-q", "--gpu", "8G", "--", "sh", "-c", "trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.05; done")
        self.assertEqual(run.stdout.readline(), "up\n")
        run.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(BOUND_S), 5)

    def test_killed_while_waiting(self):
        holder = self.holder("1")
        waiting = self.start_run("--gpu", "8G", "--", "true")
        waiting.stderr.readline()
        waiting.kill()
        waiting.wait()
        self.wait_state(2, "ended")
        self.assertEqual(self.job(2)["outcome"], "cancelled")
        self.release(holder)

    def test_killed_while_running_ends_its_program(self):
        run = self.start_run("-q", "--gpu", "60%", "--", "sh", "-c", "sleep 1000 & echo $$ $!; wait")
        pids = [int(word) for word in run.stdout.readline().split()]
        self.wait_state(1, "running")
        run.kill()
        run.wait()
        wait_until(lambda: not any(self.alive(pid) for pid in pids), "the program ends")
        self.wait_state(1, "ended")
        self.assertEqual(self.job(1)["outcome"], "lost")
        wait_until(lambda: self.card()["granted_bytes"] == 0, "the grant ends")

    def test_a_terminal_shows_one_line_that_is_kept_up(self):
        holder = self.holder("1")
        master, slave = pty.openpty()
        run = self.start_run("--gpu", "8G", "--", "true", stderr=slave, env={"TERM": "xterm"})
        os.close(slave)
        text = b""
        while text.count(b"waiting") < 2:
            text += os.read(master, 4096)
        self.assertIn(b"\r\x1b[Kmete: waiting ", text)
        self.assertNotIn(b"\n", text, "one line")
        self.release(holder)
        self.assertEqual(run.wait(BOUND_S), 0)
        os.close(master)


class SeveralCards(DaemonTest):
    sim = "4xH200"

    def test_devices_in_order(self):
        self.run_("-q", "--cpu-only", "--", "true")  # starts the daemon
        uuids = [card["uuid"] for card in self.api("/v1/cards")[1]["cards"]]
        result = self.run_("-q", "--gpu", "10%", "--devices", "3,2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.assertEqual(result.stdout.strip().split(","), [uuids[3], uuids[2]])
        grant = self.jobs()[-1]["grant"]
        self.assertEqual([card["index"] for card in grant], [3, 2])

    def test_whole_cards_are_exclusive(self):
        two = self.holder("2")
        one = self.holder("1")
        self.assertEqual(len({card["card"] for job in self.jobs() for card in job["grant"]}), 3)
        self.assert_refused(self.run_("--no-wait", "--gpu", "2", "--", "true"), 75)
        self.assertEqual(self.run_("-q", "--no-wait", "--gpu", "90%", "--", "true").returncode, 0)
        self.release(two)
        self.release(one)

    def test_all_waits_until_all_are_free_and_nobody_passes(self):
        holder = self.holder("10%")
        everything = self.start_run("-q", "--gpu", "all", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.wait_state(2, "pending")
        small = self.start_run("-q", "--gpu", "10%", "--", "true")
        self.wait_state(3, "pending")
        self.assertEqual(self.job(3)["reason"], "priority")
        self.release(holder)
        out, _ = everything.communicate(timeout=BOUND_S)
        self.assertEqual(len(out.strip().split(",")), 4)
        self.assertEqual(small.wait(BOUND_S), 0)
        self.assert_nothing_left()

    def test_procs_have_ranks_and_parts(self):
        result = self.run_("-q", "--gpu", "8G", "--procs", "4", "--", "sh", "-c",
                           "echo $RANK $LOCAL_RANK $WORLD_SIZE $METE_PART $METE_GPU_MEM_BYTES $MASTER_ADDR:$MASTER_PORT")
        rows = sorted(line.split() for line in result.stdout.splitlines())
        self.assertEqual([row[0] for row in rows], ["0", "1", "2", "3"])
        self.assertEqual({row[4] for row in rows}, {str(2 * GIB)})
        self.assertEqual(len({row[5] for row in rows}), 1)
        self.assertEqual([row[3] for row in rows], ["0", "1", "2", "3"])
        self.assert_refused(self.run_("--gpu", "1G", "--procs", "8", "--", "true"), 69, "context")

    def test_each_rank_is_held_to_its_part(self):
        result = self.run_("-q", "--gpu", "8G", "--procs", "2", "--", "sh", "-c",
                           f"{ACTOR} 'init,retain 0,info,take alloc 5G'; exit 3")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(4 * GIB), result.stdout)
        self.assertIn("for each process", result.stderr)

    def test_a_rank_that_fails_ends_the_others(self):
        result = self.run_("-q", "--gpu", "8G", "--procs", "3", "--", "sh", "-c",
                           "if [ $RANK = 1 ]; then exit 9; fi; sleep 1000")
        self.assertEqual(result.returncode, 9)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
