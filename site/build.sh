#!/usr/bin/env bash
# site/build.sh ARGOSY OUT: the site, in the folder OUT, as it is read in a browser without a server or a network.
# ARGOSY is a built launcher with its programs beside it: the pages of options are what they print. Fails for a comment
# that doxygen cannot read, a page outside of the navigation, and a link that leads nowhere. Needs what
# scripts/install_deps.sh docs names.
set -euo pipefail
cd "$(dirname "$0")/.."
argosy=$1 out=$2
work=$out.sources
rm -rf "$out" "$work"
mkdir -p "$work/pages" "$work/doxygen"
headers=$(site/api.py --headers)
{
  cat site/Doxyfile
  echo "OUTPUT_DIRECTORY = $work/doxygen"
  echo "STRIP_FROM_PATH = ."
  echo "INPUT = ${headers//$'\n'/ }"
} >"$work/Doxyfile"
doxygen "$work/Doxyfile"
site/api.py "$work/doxygen/xml" "$work/pages/reference/api"
site/commands.py "$argosy" "$work/pages/reference/commands"
site/stage.py "$work/pages"
PYTHONPATH=site sphinx-build -q -W --keep-going -b html -c site -d "$work/trees" "$work/pages" "$out"
cp benchmarks/results/*.{html,json} "$out/benchmarks/results/"
# Sphinx's own search asks a server for its excerpts; ours has them (site/static/search.js).
rm -rf "$out"/{.buildinfo,objects.inv,searchindex.js,_static/{searchtools,language_data}.js}
touch "$out/_static/search_sections.js"
site/check_site.py "$out"
