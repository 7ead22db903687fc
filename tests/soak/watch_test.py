# SPDX-License-Identifier: Apache-2.0
"""What counts as growth."""
import pathlib
import sqlite3
import tempfile
import unittest

from watch import MIB, Quantity, database_bytes


def quantity(values, floor=MIB):
    made = Quantity("q", "bytes", floor)
    for at, value in enumerate(values):
        made.add(at, value)
    return made


class WatchTest(unittest.TestCase):
    def test_a_steady_leak_is_growth(self):
        self.assertTrue(quantity([10 * MIB + at * MIB // 20 for at in range(600)]).judge(600)[2])

    def test_peaks_and_warming_up_are_none(self):
        flat = [20 * MIB + (at % 7) * MIB // 10 for at in range(600)]
        for at in range(0, 600, 50):
            flat[at] = 90 * MIB
        self.assertFalse(quantity(flat).judge(600)[2])
        self.assertFalse(quantity([(1 if at < 100 else 20) * MIB for at in range(600)]).judge(600)[2])

    def test_what_stays_below_the_floor_is_none(self):
        self.assertFalse(quantity([4 + at // 100 for at in range(600)], floor=16).judge(600)[2])

    def test_little_of_much_is_none(self):
        self.assertFalse(quantity([(100 if at < 300 else 104) * MIB for at in range(600)]).judge(600)[2])
        self.assertTrue(quantity([(100 if at < 300 else 106) * MIB for at in range(600)]).judge(600)[2])

    def test_what_was_never_seen_is_wrong_only_where_it_should_always_be_seen(self):
        self.assertEqual(quantity([]).judge(600), (None, None, ""))
        always = Quantity("q", "bytes", MIB, always=True)
        self.assertTrue(always.judge(600)[2])
        for at in range(300):  # not in the last sixth
            always.add(at, MIB)
        self.assertTrue(always.judge(600)[2])
        for at in range(300, 600):
            always.add(at, MIB)
        self.assertFalse(always.judge(600)[2])

    def test_a_database_counts_what_is_in_its_log(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "d.db")
            with sqlite3.connect(path) as database:
                self.assertEqual(database.execute("PRAGMA journal_mode = WAL").fetchone()[0], "wal")
                database.execute("PRAGMA wal_autocheckpoint = 0")
                database.execute("CREATE TABLE t (x)")
                page = database.execute("PRAGMA page_size").fetchone()[0]
                for turn in range(6):
                    database.executemany("INSERT INTO t VALUES (?)", [("y" * 2000,)] * 300)
                    database.commit()
                    if turn == 3:
                        database.execute("PRAGMA wal_checkpoint(RESTART)")
                    pages = database.execute("PRAGMA page_count").fetchone()[0]
                    self.assertEqual(database_bytes(path), pages * page, turn)
                    self.assertGreater(pages * page, path.stat().st_size if turn != 3 else 0)
            database.close()
            self.assertEqual(database_bytes(pathlib.Path(folder, "none.db")), None)


if __name__ == "__main__":
    unittest.main()
