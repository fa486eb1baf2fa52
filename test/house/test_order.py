"""Shows that test/torture/order.py tells stores that were split from joined and moved ones."""

import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torture", "order.py")
_spec = importlib.util.spec_from_file_location("order", PATH)
order = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(order)

TOLD = [(0, 8), (8, 32), (64, 88)]
# Instructions; what becomes of the three: split, joined, moved, not seen.
ROWS = (
    ([(0, 8), (8, 32), (64, 88)], (0, 0, 0, 0)),
    ([(0, 8), (16, 32), (8, 16), (64, 88)], (1, 0, 0, 0)),  # within one, in any order
    ([(0, 4), (64, 70)], (0, 0, 0, 1)),  # what was there is not seen
    ([(0, 16), (16, 32), (64, 88)], (1, 1, 0, 0)),
    ([(8, 32), (0, 8), (64, 88)], (0, 0, 1, 1)),
    ([(8, 16), (64, 88), (16, 32), (0, 8)], (0, 0, 2, 1)),
    ([(0, 8), (200, 208), (64, 88)], (0, 0, 1, 1)),  # where the source stores nothing
)


class Order(unittest.TestCase):
    def test_what_became_of_stores(self):
        for stepped, want in ROWS:
            with self.subTest(stepped=stepped):
                self.assertEqual(order.assign(TOLD, stepped), want)

    def test_builds_that_do_other_things_cannot_be_compared(self):
        told = [(("told", "1", "0"), [(0, 8)]), (("flush", "0", "0"), [])]
        self.assertEqual(order.compare(told, told), [1, 1, 0, 0, 0, 0])
        self.assertIsNone(order.compare(told, told[:1]))
        self.assertIsNone(order.compare(told, told[::-1]))


unittest.main()
