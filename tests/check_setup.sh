#!/bin/bash
# check_setup.sh - scripts/setup: what it would do under each package manager,
# what it installs when one thing is missing, what it refuses.
set -euo pipefail
setup=$(cd "$(dirname "$0")/.." && pwd)/scripts/setup
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "check_setup: $*" >&2
  exit 1
}

# $1 has each of the other arguments as a part.
holds() {
  local text=$1 part
  shift
  for part in "$@"; do
    case $text in
      *"$part"*) ;;
      *) fail "expected '$part' in: $text" ;;
    esac
  done
}

lacks() {
  case $1 in *"$2"*) fail "did not expect '$2' in: $1" ;; esac
}

# A dry run for a fresh machine, per manager.
real_path=$PATH
fresh() {
  local manager=$1
  shift
  PATH=$real_path bash "$setup" --dry-run "--manager=$manager" "$@"
}
both='cmake --preset release -G Ninja'
holds "$(fresh apt)" 'apt-get update' DEBIAN_FRONTEND=noninteractive \
  'install -q -y' liblua5.4-dev libcairo2-dev libjansson-dev libedit-dev \
  nettle-dev libpcre2-dev ' check ' fonts-dejavu-core ninja-build gcc "$both" \
  'cmake --build build'
holds "$(fresh dnf)" 'dnf install -y' lua-devel cairo-devel jansson-devel \
  libedit-devel nettle-devel pcre2-devel check-devel dejavu-sans-fonts "$both"
holds "$(fresh pacman)" 'pacman -S --needed --noconfirm' ' lua54 ' ' cairo ' \
  ' nettle ' ' pcre2 ' ttf-dejavu "$both"
holds "$(fresh brew)" 'brew install' lua@5.4 cairo jansson nettle pcre2 "$both"
lacks "$(fresh brew)" sudo
lacks "$(fresh apt)" clang-format
holds "$(fresh apt --ci)" clang-format shellcheck chromium-headless-shell
lacks "$(fresh apt)" chromium
lacks "$(fresh brew --ci)" chromium
holds "$(fresh apt --preset=asan -D A=1 -DB=2)" \
  'cmake --preset asan -G Ninja -DA=1 -DB=2' 'cmake --build build-asan'

# A machine of fakes: every tool there, each library as the file 'libraries'
# says; package managers and cmake write down how they were called.
mkdir "$work/bin"
fake() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
for tool in cc ninja; do fake "$tool" true; done
# shellcheck disable=SC2016 # for the fakes to expand
for tool in apt-get cmake; do
  fake "$tool" 'echo "${0##*/} $*" >>'"$work/log"
done
# shellcheck disable=SC2016
fake pkg-config 'for last; do true; done; ! grep -qx -- "$last" '"$work/absent"
fake id 'cat '"$work/id"
for tool in bash dirname env grep find tr getconf cat; do
  ln -s "$(command -v "$tool")" "$work/bin/$tool"
done
machine() { # $1: user id; the rest: absent libraries; the log to standard output
  echo "$1" >"$work/id"
  shift
  printf '%s\n' "$@" >"$work/absent"
  : >"$work/log"
  PATH=$work/bin bash "$setup" >"$work/out" 2>&1 || return
  cat "$work/log"
}

log=$(machine 0 none)
lacks "$log" apt-get
holds "$log" 'cmake --build build --parallel'
log=$(machine 0 nettle)
holds "$log" 'apt-get update' 'apt-get install' ' nettle-dev'
lacks "$log" cairo
if log=$(machine 1000 nettle); then fail "installed without root: $log"; fi
holds "$(cat "$work/out")" 'missing: nettle-dev' 'there is no sudo'
# shellcheck disable=SC2016
fake sudo 'echo "sudo $*" >>'"$work/log"
log=$(machine 1000 nettle cairo-pdf)
holds "$log" 'sudo apt-get update' 'sudo env DEBIAN_FRONTEND=noninteractive' \
  'libcairo2-dev nettle-dev'
rm "$work/bin/apt-get"
if log=$(machine 0 nettle); then fail "installed without a manager: $log"; fi
holds "$(cat "$work/out")" 'missing: lib:nettle' 'no package manager among'

# What is refused.
refused() { # $1: a part of the message; the rest: arguments
  local text part=$1
  shift
  if text=$(PATH=$real_path bash "$setup" "$@" 2>&1); then
    fail "accepted: $*"
  fi
  holds "$text" "$part"
}
refused "unknown option '--dryrun'" --dryrun
refused '--manager=zypper: expected apt, dnf, pacman or brew' \
  --dry-run --manager=zypper
refused '--manager is for --dry-run' --manager=apt
refused '--preset=fast: expected release, debug, asan or tsan' --preset=fast
refused 'expected NAME=VALUE' -D SINKLAB_WERROR
refused 'expected NAME=VALUE' -D
holds "$(PATH=$real_path bash "$setup" --help)" 'usage: scripts/setup'
echo ok
