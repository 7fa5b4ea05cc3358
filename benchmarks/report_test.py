"""What report.py must never get wrong: ratios within a repetition, and void results."""

import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

import cases
import report


def step_run(samples, first=2.0, last=1.0, agree="yes"):
    return {
        "objects": [
            {
                "bench": "x",
                "samples_ms": samples,
                "loss_first": first,
                "loss_last": last,
                "ranks_agree": agree,
            }
        ],
        "wall_ms": 5.0,
    }


def evaluate(ours, peers, failures=None):
    case = cases.Case(
        "train",
        "x",
        {"argosy": ["a"], "ddp": ["b"]},
        [cases.Measure("x_step", "ms", cases._samples_ms, [("argosy", "ddp", 1.0)])],
        cases._check_step(exact_end=True),
    )
    return report.evaluate(case, {"argosy": ours, "ddp": peers}, failures or {})[0]


class Ratios(unittest.TestCase):
    def test_are_taken_within_a_repetition(self):
        # The machine is three times slower in the second repetition; the ratio stays 0.5.
        result = evaluate(
            [step_run([1, 1, 9]), step_run([3, 3, 3])], [step_run([2, 2, 2]), step_run([6, 1, 6])]
        )
        self.assertEqual(
            result.ratios[0].line(), "RATIO train.x_step.ddp 0.500 [0.500 0.500] target <=1"
        )

    def test_give_median_and_range(self):
        ours = [step_run([x]) for x in (1, 2, 9)]
        result = evaluate(ours, [step_run([2])] * 3)
        self.assertEqual(
            result.ratios[0].line(), "RATIO train.x_step.ddp 1.000 [0.500 4.500] target <=1"
        )


class Void(unittest.TestCase):
    def check(self, run, words):
        result = evaluate([step_run([1]), run], [step_run([2])] * 2)
        self.assertIn(words, result.void["argosy"])
        self.assertEqual(result.ratios, [])
        self.assertNotIn("argosy", result.spreads)

    def test_a_loss_that_does_not_fall(self):
        self.check(step_run([1], last=2.5), "does not fall")

    def test_a_loss_that_is_nan(self):
        self.check(step_run([1], last=None), "no usable result")

    def test_ranks_that_differ(self):
        self.check(step_run([1], agree="no"), "parameters differ")

    def test_a_loss_that_is_not_the_peers(self):
        self.check(step_run([1], last=1.01), "another variant's is 1.0")

    def test_no_output(self):
        self.check({"objects": [], "wall_ms": 1.0}, "no usable result")

    def test_a_program_that_failed(self):
        result = evaluate([], [step_run([2])], {"argosy": "exit code 1"})
        self.assertEqual(result.void, {"argosy": "exit code 1"})
        self.assertEqual(result.ratios, [])

    def test_a_variant_that_is_wrong_by_itself_does_not_void_those_it_is_compared_with(self):
        result = evaluate([step_run([1], last=1.01, agree="no")], [step_run([2])])
        self.assertEqual(list(result.void), ["argosy"])

    def test_is_reported_by_publish(self):
        with tempfile.TemporaryDirectory() as out:
            args = Namespace(
                nproc=2,
                peers=None,
                bin=Path("bin"),
                out=Path(out),
                load=0,
                peer_versions={},
                repeated={},
                reps=1,
            )
            good = evaluate([step_run([1])], [step_run([2])])
            bad = evaluate([step_run([1], agree="no")], [step_run([2])])
            root = Path(__file__).resolve().parent.parent
            self.assertFalse(report.publish("train", [[good]], args, root))
            self.assertTrue(report.publish("train", [[bad]], args, root))
            written = next(Path(out).glob("*-train.md")).read_text(encoding="utf-8")
            self.assertIn("VOID train.x.argosy: the ranks' parameters differ", written)


class Collectives(unittest.TestCase):
    def test_bandwidths_are_those_of_nccl_tests(self):
        result = report.Result("all_reduce.float_sum", "all_reduce.1MB", "us", 1 << 20)
        result.spreads = {"argosy": report.Spread(1000.0, 900.0, 1100.0)}
        row = report._rows([result], ranks=4)[1]
        self.assertEqual(row[0], "1M")
        self.assertEqual(row[6:8], ["1.049", "1.573"])  # bytes / time, and times 2 (n - 1) / n


if __name__ == "__main__":
    unittest.main()
