# shellcheck shell=sh
# source argosy-…/env.sh (bash, zsh, dash from within its folder): argosy's commands for this shell, and for CMake and
# pkg-config its library.
if [ -n "${BASH_SOURCE-}" ]; then
  argosy_home=$(CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
elif [ -n "${ZSH_VERSION-}" ]; then
  eval 'argosy_home=$(CDPATH="" cd -- "$(dirname -- "${(%):-%x}")" && pwd)' # other shells cannot read it
else
  argosy_home=$PWD
fi
case $argosy_home in
  *:*)
    echo "argosy: $argosy_home has a colon, at which PATH is divided: call its bin/argosy by its path, or move it" >&2
    unset argosy_home
    return 1
    ;;
esac
if [ ! -x "$argosy_home/bin/argosy" ]; then
  echo "argosy: no bin/argosy in $argosy_home: source env.sh from within its folder" >&2
  unset argosy_home
  return 1
fi
export PATH="$argosy_home/bin:$PATH"
export CMAKE_PREFIX_PATH="$argosy_home${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
export PKG_CONFIG_PATH="$argosy_home/lib/x86_64-linux-gnu/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
unset argosy_home
