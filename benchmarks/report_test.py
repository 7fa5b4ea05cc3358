"""What report.py must never get wrong: ratios within a repetition, and void results."""

import json
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

import plots
import report
from suites import SUITES, base, virtual


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
    case = base.Case(
        "train",
        "x",
        {"argosy": ["a"], "ddp": ["b"]},
        [base.Measure("x_step", "ms", base.samples_ms, [("argosy", "ddp", 1.0)])],
        base.check_step(exact_end=True),
    )
    return report.evaluate(case, {"argosy": ours, "ddp": peers}, failures or {})[0]


def arguments(out, reps, only=None):
    return Namespace(
        engine="debian",
        nproc=2,
        peers=None,
        bin=Path("bin"),
        out=Path(out),
        load=0,
        peer_versions={},
        repeated={},
        reps=reps,
        only=only,
    )


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
            args = arguments(out, reps=1)
            good = evaluate([step_run([1])], [step_run([2])])
            bad = evaluate([step_run([1], agree="no")], [step_run([2])])
            root = Path(__file__).resolve().parent.parent
            self.assertFalse(report.publish("train", [[good]], args, root))
            self.assertTrue(report.publish("train", [[bad]], args, root))
            written = next(Path(out).glob("*-train.md")).read_text(encoding="utf-8")
            self.assertIn("VOID train.x.argosy: the ranks' parameters differ", written)


class VirtualRanks(unittest.TestCase):
    def run_of(self, checksum, batch=16):
        run = step_run([1])
        run["objects"][0] |= {"ranks": 2, "virtual_ranks": 8, "batch": batch, "checksum": checksum}
        return run

    def test_end_with_the_same_bits_wherever_they_are_computed(self):
        self.assertIsNone(virtual._check(self.run_of(0.5), [self.run_of(0.5)]))
        self.assertIn("sum is 0.5", virtual._check(self.run_of(0.5), [self.run_of(0.25)]))

    def test_are_not_held_to_other_batches(self):
        self.assertIsNone(virtual._check(self.run_of(0.5), [self.run_of(0.25, batch=64)]))


class Collectives(unittest.TestCase):
    def test_know_their_number_of_ranks(self):
        run = step_run([1])
        run["objects"][0]["ranks"] = 8
        self.assertEqual(evaluate([run], [step_run([2])]).ranks, {"argosy": 8, "ddp": None})

    def test_bandwidths_are_those_of_nccl_tests(self):
        result = report.Result("all_reduce.float_sum", "all_reduce.1MB", "us", 1 << 20)
        result.spreads = {"argosy": report.Spread(1000.0, 900.0, 1100.0)}
        result.ranks = {"argosy": 4}
        row = report._rows([result])[1]
        self.assertEqual(row[:2], ["1M", "4"])
        self.assertEqual(row[7:9], ["1.049", "1.573"])  # bytes / time, and times 2 (n - 1) / n


class Pictures(unittest.TestCase):
    def page(self, reps, suite, only=None):
        with tempfile.TemporaryDirectory() as out:
            results = [evaluate([step_run([1])] * 5, [step_run([2])] * 5)]
            report.publish(suite, [results], arguments(out, reps, only), Path(__file__).resolve().parent.parent)
            return plots.write(out).read_text(encoding="utf-8")

    def test_show_each_measure_and_ratio(self):
        page = self.page(5, "ddp")
        self.assertIn("<h2>ddp</h2>", page)
        self.assertIn(">x_step.ddp</text>", page)
        self.assertIn(">0.500</text>", page)
        self.assertNotIn("<script", page)
        self.assertNotIn("//", page)  # nothing to load

    def test_leave_out_runs_of_few_repetitions_and_other_files(self):
        self.assertNotIn("<svg", self.page(4, "ddp"))
        self.assertNotIn("<svg", self.page(5, "no_suite"))

    def test_leave_out_a_part_of_a_suite_that_never_ran_whole(self):
        self.assertNotIn("<svg", self.page(5, "ddp", only=["x"]))

    def test_show_a_later_run_of_a_part_where_it_has_all_variants(self):
        def run(minute, only, *measures):
            data = {"repetitions": 5, "only": only, "measures": [{"name": n, "variants": v} for n, v in measures]}
            Path(out, f"2026-01-01-00{minute}-ddp.json").write_text(json.dumps(data), encoding="utf-8")

        both, ours = {"argosy": 1, "torch": 1}, {"argosy": 2}
        with tempfile.TemporaryDirectory() as out:
            run(10, [], ("ddp.a", both), ("ddp.b", both))
            run(11, ["a"], ("ddp.a", both | {"floor": 3}))
            run(12, ["b"], ("ddp.b", ours), ("ddp.unknown", ours))
            ddp = plots.newest(out)["ddp"]
        self.assertEqual([m["variants"] for m in ddp["measures"]], [both | {"floor": 3}, both])
        self.assertEqual(ddp["files"], ["2026-01-01-0010-ddp.json", "2026-01-01-0011-ddp.json"])

    def test_bandwidth_and_scaling_are_drawn(self):
        variants = {"argosy": {"median": 10.0, "min": 9.0, "max": 11.0}}
        sizes = [{"name": f"collectives.{size}", "variants": variants} for size in ("4KB", "64KB", "1MB", "32MB")]
        self.assertIn("<polyline", plots.bandwidth(sizes, 2))
        ranks = [{"name": f"ddp.{name}", "variants": variants} for name in ("resnet18_1_rank", "resnet18", "resnet18_4_ranks")]
        self.assertIn("4 ranks", plots.scaling(ranks))


class Suites(unittest.TestCase):
    @mock.patch("os.geteuid", return_value=0)  # the suites that need root are looked at too
    def test_have_names_of_their_own_and_one_command_for_each_variant(self, _):
        args = Namespace(
            bin=Path("bin"), peers="python", nproc=2, engine="own", data="d", root=Path("r"), scratch=Path("s"), pictures=Path("p"),
            peer_versions={"nvidia-dali-cuda130": "2.4.0"},
        )
        for suite, cases in SUITES.items():
            names = [(case.name, measure.name) for case in cases(args) for measure in case.measures]
            self.assertTrue(names, suite)
            self.assertEqual(len(names), len(set(names)), suite)
            for case in cases(args):
                self.assertEqual(case.suite, suite)
                for measure in case.measures:
                    for ours, other, _ in measure.pairs:
                        self.assertIn(ours, case.variants)
                        self.assertIn(other, case.variants)


if __name__ == "__main__":
    unittest.main()
