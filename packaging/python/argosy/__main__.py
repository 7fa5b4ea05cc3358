"""`python -m argosy …` becomes the program `argosy` that was installed with this package."""

import importlib.metadata
import os
import sys
import sysconfig


def _programs():
    """Where it may be, the likeliest first: as pip wrote it down, beside the package, and where programs usually go."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(beside, "bin", "argosy")  # pip --target
    try:
        distribution = importlib.metadata.distribution("argosy")
        for file in distribution.files or []:
            if file.parts[-2:] == ("bin", "argosy"):
                yield os.path.normpath(str(distribution.locate_file(file)))
    except importlib.metadata.PackageNotFoundError:
        pass
    schemes = ["posix_user"] if "posix_user" in sysconfig.get_scheme_names() else []
    for scheme in [None, *schemes]:
        yield os.path.join(sysconfig.get_path("scripts", *([scheme] if scheme else [])), "argosy")


def main():
    programs = list(dict.fromkeys(_programs()))
    for program in programs:
        if os.access(program, os.X_OK):
            os.environ.setdefault("PYTHON_EXEC", sys.executable)  # that which runs scripts
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit(f"argosy: there is no {' or '.join(programs)}: install the wheel again")


if __name__ == "__main__":
    main()
