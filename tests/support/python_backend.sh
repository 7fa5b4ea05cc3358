# What the tests of argosy.torch and argosy.paddle share. They source it, with these set: name (torch or paddle), python,
# argosy (the launcher), library (libargosy_comm.so) and folder, in which the package is compiled here, as pip would. Where
# library is a package for pip, pip puts it there.
# shellcheck shell=bash disable=SC2154
fail() { echo "$name: $*" >&2; exit 1; }
expect() { [[ $2 == "$1" ]] || fail "expected \"$1\", got \"$2\""; }

source_root=$here/../..
# from_source: compiles it here, again only what has changed.
from_source() {
  mkdir -p "$folder/argosy/abi" "$folder/argosy/$name/lib"
  find "$folder" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.py' \) -delete # what the source may not have any more
  cp -rp "$source_root/packaging/$name/." "$folder"
  cp -p "$source_root"/argosy/abi/{comm,library}.h "$folder/argosy/abi"
  cp -p "$source_root/packaging/python_interpreter.h" "$folder/argosy/abi/interpreter.h"
  cp -p "$source_root/packaging/python_compiled.py" "$folder/argosy/$name/_compiled.py"
  cp -p "$library" "$folder/argosy/$name/lib"
  (cd "$folder" && "$python" setup.py -q build_ext --inplace) >"$folder/compile.log" 2>&1 ||
    { tail -n 30 "$folder/compile.log" >&2; fail "it does not compile"; }
}
# from_package: as a user has it.
from_package() {
  rm -rf "$folder"
  mkdir -p "$folder"
  "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
    --target "$folder" "$library" >"$folder.log" 2>&1 || { tail -n 30 "$folder.log" >&2; fail "pip cannot install it"; }
}
if [[ $library == *.tar.gz ]]; then from_package; else from_source; fi
export PYTHONPATH=$folder OMP_NUM_THREADS=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# counted FILE...: the lines that ranks print, without their numbers, each once with how often it stands there
counted() {
  sed -nE 's/^(\[rank [0-9]+\] )?((done|named|compared|trained|weights|bits).*)/\2/p' "$@" | sort | uniq -c |
    sed -E 's/^ *//'
}
# run RANKS JOB [VARIABLE=VALUE]: what its ranks print, counted. The job is one of backend_ranks.py.
run() { run_program backend_ranks.py "$@"; }
run_program() {
  local program=$1 ranks=$2 job=$3
  shift 3
  env "$@" timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node "$ranks" --no_python "$python" "$here/$program" \
    "$job" >"$scratch/said" 2>"$scratch/errors" ||
    { local code=$?; cat "$scratch/said" "$scratch/errors" >&2; fail "$job on $ranks ranks: exit code $code"; }
  counted "$scratch/said"
}
# other_version RUNTIME: what was compiled for one version of it is refused by another
other_version() {
  local said
  said=$("$python" -c "import $name; $name.__version__ = '2.0'; import argosy.$name" 2>&1) &&
    fail "it loads for any version of $1"
  [[ $said == *"was compiled for $1 "*", and this is 2.0"* ]] || fail "with another $1 it says: $said"
}
# death JOB: of three ranks the job ends one with code 3, and the two others name it
death() {
  local said
  said=$(timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node 3 --no_python sh -c \
    '"$0" "$1" "$2" || [ $? -eq 3 ]' "$python" "$here/backend_ranks.py" "$1" 2>&1 | grep -c ' named$') ||
    fail "$1: nobody named who died"
  expect 2 "$said"
}
