# SPDX-License-Identifier: Apache-2.0
"""What counts as growth."""
import unittest

from watch import MIB, Quantity


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


if __name__ == "__main__":
    unittest.main()
