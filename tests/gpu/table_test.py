"""What table.py makes of figures: python3 table_test.py"""

import contextlib
import io
import json
import unittest

import table


def step(variant, ms, number=1, precision="bf16", losses=(7.0, 3.0), part="steps"):
    return {"part": part, "variant": variant, "precision": precision, "round": number, "batch": 256,
            "samples_ms": [ms] * 20, "loss_first": losses[0], "loss_last": losses[1]}


def rate(what, gb_per_s):
    return {"part": "copies", "what": what, "round": 1, "gb_per_s": gb_per_s}


def report(*lines):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        wrong = table.report([json.dumps(line) for line in lines])
    return text.getvalue(), wrong


def goals_of(*lines):
    """Of each goal, the end of its line."""
    text, _ = report(*lines)
    goals = [line[len("goal: "):].split("  ") for line in text.splitlines() if line.startswith("goal: ")]
    return {words[0]: words[-1] for words in goals}


class Table(unittest.TestCase):
    def test_steps_are_compared_round_by_round(self):
        goals = goals_of(step("argosy", 94), step("pytorch", 100), step("argosy", 194, 2), step("pytorch", 200, 2),
                         step("argosy", 90, 3), step("pytorch compiled", 80, 3))
        self.assertEqual(goals, {"step, bf16: argosy beside eager": "missed",  # 0.955
                                 "step, bf16: argosy beside compiled": "missed"})
        self.assertEqual(goals_of(step("argosy", 94), step("pytorch", 100))["step, bf16: argosy beside eager"], "met")

    def test_precisions_are_not_mixed(self):
        self.assertEqual(goals_of(step("argosy", 94), step("pytorch", 100, precision="f32")), {})

    def test_a_gpt_has_goals_of_its_own(self):
        goals = goals_of(step("argosy", 94, part="gpt"), step("pytorch", 100, part="gpt"), step("pytorch", 90),
                         step("pytorch compiled", 89, part="gpt"))
        self.assertEqual(goals, {"step, gpt, bf16: argosy beside eager": "met",
                                 "step, gpt, bf16: argosy beside compiled": "missed"})
        lost = [step("argosy", 94, part="gpt", losses=(10.9, 5.0)), step("pytorch", 100, part="gpt", losses=(10.0, 5.0))]
        self.assertEqual(len(report(*lost)[1]), 1)
        self.assertEqual(report(lost[0], step("pytorch", 100))[1], [])  # another model's loss may be another

    def test_sums_stand_beside_the_copy(self):
        goals = goals_of(rate("copy on the device", 1000), rate("sum of 2 f32", 810), rate("sum of 8 f32", 790))
        self.assertEqual(goals["exact: sum of 2 f32 beside a copy"], "met")
        self.assertEqual(goals["exact: sum of 8 f32 beside a copy"], "missed")

    def test_input_keeps_up_with_the_step(self):
        loader = {"part": "input", "variant": "argosy", "images": 1000, "samples_ms": [500]}  # 2000 pictures/s
        name = "input: pictures/s beside the step's"
        self.assertEqual(goals_of(loader, step("argosy", 129))[name], "met")
        self.assertEqual(goals_of(loader, step("argosy", 127))[name], "missed")

    def test_wrong_losses_make_times_void(self):
        self.assertEqual(report(step("argosy", 90), step("pytorch", 100))[1], [])
        self.assertEqual(len(report(step("argosy", 90, losses=(7.0, 7.0)))[1]), 1)
        self.assertEqual(len(report(step("argosy", 90, losses=(7.0, float("nan"))))[1]), 1)
        self.assertEqual(len(report(step("argosy", 90, losses=(6.8, 3.0)), step("pytorch", 100))[1]), 1)

    def test_parts_that_did_not_run_are_named(self):
        text, _ = report({"part": "nccl", "result": "not run"}, {"part": "exact", "result": "failed"})
        self.assertIn("parts: nccl not run; exact failed", text)


if __name__ == "__main__":
    unittest.main()
