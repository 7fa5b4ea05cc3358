"""Runs chosen files of test/distributed of PyTorch's public source on one backend (ARGOSY_TEST_BACKEND).

The source is not part of this repository and is not fetched: SOURCE is a folder that has it. public_files.txt says
which of its files are run, and why others are not.
"""

import argparse
import os
from pathlib import Path

import suite

HERE = Path(__file__).parent
LISTED = HERE / "public_files.txt"


def listed():
    lines = (line.split("#")[0].strip() for line in LISTED.read_text().splitlines())
    return [line for line in lines if line]


def chosen(files, starts):
    return [file for file in files if not starts or any(map(file.startswith, starts))]


def prepare(folder):
    """Files import each other by their names below test, and some read what the suite of a backend reads."""
    paths = [str(folder), str(folder / "distributed"), os.environ.get("PYTHONPATH", "")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "BACKEND": "gloo", "WORLD_SIZE": "4"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="the folder of PyTorch's source")
    parser.add_argument("out", help="the JSON file")
    parser.add_argument("--commit", required=True, help="the commit or release of the source, for the record")
    parser.add_argument("--start-with", action="append", default=[], help="only files whose paths begin so")
    parser.add_argument("--logs", help="a folder for what failed tests printed")
    parser.add_argument("--deadline", default="60", help="seconds for one test")
    parser.add_argument("--at-once", default="1", help="tests that run at the same time")
    options = parser.parse_args()
    folder = Path(options.source).resolve() / "test"
    prepare(folder)
    run = suite.Suite(options.out, options.logs)
    given = ["--deadline", options.deadline, "--at-once", options.at_once]
    for file in chosen(listed(), options.start_with):
        run.run(folder / "distributed" / file, file, given)
    run.finish(source=options.commit)


if __name__ == "__main__":
    main()
