"""Runs the tests that PyTorch ships in its wheel on one backend (ARGOSY_TEST_BACKEND) and leaves a JSON file."""

import argparse
from pathlib import Path

import suite

HERE = Path(__file__).parent


def patterns(path):
    lines = (line.split("#")[0].strip() for line in Path(path).read_text().splitlines())
    return [line for line in lines if line]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the JSON file")
    parser.add_argument("--only", help="a file of patterns, one a line: the tests whose names they find")
    parser.add_argument("--logs", help="a folder for what failed tests printed")
    parser.add_argument("--deadline", default="120", help="seconds for one test")
    parser.add_argument("--at-once", default="1", help="tests that run at the same time")
    parser.add_argument("--start", default="fork", help="fork or spawn: how ranks are started")
    options = parser.parse_args()
    given = ["--deadline", options.deadline, "--at-once", options.at_once, "--start", options.start]
    for pattern in patterns(options.only) if options.only else []:
        given += ["--only", pattern]
    run = suite.Suite(options.out, options.logs)
    run.run(HERE / "shipped_tests.py", "shipped", given)
    run.finish()


if __name__ == "__main__":
    main()
