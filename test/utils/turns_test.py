"""Long integration cases take turns: which runs is a matter of the seed alone, and none is left out by all of them."""
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import run


class Turns(unittest.TestCase):
    def test_each_case_runs_with_one_of_so_many_seeds(self):
        for name in ("mask/random_steps", "layer_type/rounded_layers", "signal/transforms_of_every_length"):
            for seconds, turns in ((0, 1), (2, 2), (3, 3), (5, 5), (40, 12)):
                found = []
                for seed in range(4_000_000_000, 4_000_000_000 + turns):
                    with mock.patch.object(run, "SEED", seed):
                        found.append(run.has_turn(name, seconds))
                self.assertEqual(sum(found), 1, f"{name}: {found}")

    def test_cases_of_a_file_do_not_all_run_with_one_seed(self):
        with mock.patch.object(run, "SEED", 1):
            self.assertEqual({run.has_turn(f"mask/case_{i}", 4) for i in range(20)}, {True, False})


if __name__ == "__main__":
    unittest.main()
