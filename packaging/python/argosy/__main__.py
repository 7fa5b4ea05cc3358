"""`python -m argosy …` becomes the program `argosy` of the same environment."""

import os
import sys
import sysconfig


def main():
    schemes = ["posix_user"] if "posix_user" in sysconfig.get_scheme_names() else []
    folders = [sysconfig.get_path("scripts"), *(sysconfig.get_path("scripts", scheme) for scheme in schemes)]
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))  # pip --target
    for folder in folders:
        program = os.path.join(folder, "argosy")
        if os.access(program, os.X_OK):
            os.environ.setdefault("PYTHON_EXEC", sys.executable)  # that which runs scripts
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit(f"argosy: no program argosy in {' or '.join(folders)}: install the wheel again")


if __name__ == "__main__":
    main()
