#!/bin/bash
# check_install.sh BUILD CMAKE CC [C flags ...] - an installed tree works where
# it was moved to, and a stranger builds plugins against it in both ways.
set -euo pipefail
build=$1 cmake=$2 cc=$3
shift 3
flags="$*"
source=$(cd "$(dirname "$0")" && pwd)/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "check_install: $*" >&2
  exit 1
}

# Run a command; each word of $1 is in its output.
says() {
  local words=$1 word out
  shift
  out=$("$@" 2>&1) || fail "$*: status $?: $out"
  for word in $words; do
    case $out in
      *"$word"*) ;;
      *) fail "$*: expected '$word' in: $out" ;;
    esac
  done
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || {
  cat "$work/log"
  fail "cmake --install failed"
}
# Moved, and with a space in its name. PREFIX is absolute and free of links.
mv "$work/first" "$work/the place"
prefix=$(cd "$work/the place" && pwd -P)
for file in bin/sinklab lib/sinklab/plugins/softmax.so \
  lib/sinklab/plugins/relu.so share/sinklab/scripts/sinklab/init.lua \
  share/sinklab/scripts/experiments/theorem2.lua include/sinklab/plugin.h \
  include/sinklab/vmath.h include/sinklab/reduce.h \
  share/sinklab/scripts/templates/template_row.c \
  share/sinklab/scripts/templates/report.html \
  share/sinklab/scripts/data/shakespeare.txt \
  lib/pkgconfig/sinklab.pc lib/cmake/sinklab/sinklabConfig.cmake \
  share/man/man1/sinklab.1 share/man/man3/sinklab.3 \
  share/bash-completion/completions/sinklab share/zsh/site-functions/_sinklab \
  share/fish/vendor_completions.d/sinklab.fish share/doc/sinklab/LICENSE; do
  [ -f "$prefix/$file" ] || fail "not installed: $file"
done
# The generated pages are of the commands and the library that are installed.
for shell in bash:share/bash-completion/completions/sinklab \
  zsh:share/zsh/site-functions/_sinklab \
  fish:share/fish/vendor_completions.d/sinklab.fish; do
  "$prefix/bin/sinklab" completion "${shell%%:*}" |
    cmp - "$prefix/${shell#*:}" || fail "stale: ${shell#*:}"
done
grep -q '^\.SS run SCRIPT' "$prefix/share/man/man1/sinklab.1" ||
  fail "sinklab.1 has no command run"
grep -q 'lab.sinks' "$prefix/share/man/man3/sinklab.3" ||
  fail "sinklab.3 has no lab.sinks"
# The guides and figures of the installed README are where it links to.
grep -o 'docs/[a-z0-9/-]*\.[a-z]*' "$prefix/share/doc/sinklab/README.md" |
  sort -u >"$work/links"
[ "$(wc -l <"$work/links")" -gt 5 ] || fail "README.md links to no guides"
while read -r file; do
  [ -f "$prefix/share/doc/sinklab/$file" ] || fail "README.md: no $file"
done <"$work/links"
if grep -rIl "$build" "$prefix" >"$work/log"; then
  fail "these name the build folder: $(cat "$work/log")"
fi

# From another folder, with its own scripts (not those of the source tree, which
# have no experiment 'moved') and its own plugins.
mkdir "$work/elsewhere"
cd "$work/elsewhere"
sinklab=$prefix/bin/sinklab
cat >"$prefix/share/sinklab/scripts/experiments/moved.lua" <<'END'
-- experiments/moved.lua - Only here.
local lab = require "sinklab"
print("moved " .. lab.options { answer = 41 }.answer + 1)
END
says 'sinklab 0.1.0' "$sinklab" version
says 'moved theorem2' "$sinklab" list
says 'moved 42' "$sinklab" run moved
says 'moved 43' "$sinklab" run experiments/moved.lua --answer=42
says "softmax relu $prefix/lib/sinklab/plugins" "$sinklab" plugin list
says "softmax $prefix/lib/sinklab/plugins/softmax.so" \
  "$sinklab" plugin info softmax

# A plugin by hand, with pkg-config (which escapes the space).
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
pkg-config --exists 'sinklab >= 0.1 sinklab < 1' || fail "no sinklab.pc"
eval "cflags=($(pkg-config --cflags sinklab))"
eval "libs=($(pkg-config --libs sinklab))"
# shellcheck disable=SC2154,SC2086 # eval set them; flags are words
{
  "$cc" $flags "${cflags[@]}" -Wall -Wextra -Wpedantic -Werror -O2 -DSL_SINGLE \
    -c "$source/even.c" -o f32.o
  "$cc" $flags "${cflags[@]}" -Wall -Wextra -Wpedantic -Werror -O2 \
    -c "$source/even.c" -o f64.o
  "$cc" $flags -shared f32.o f64.o -o even.so "${libs[@]}"
}
says 'even 1.0 row' "$sinklab" plugin info ./even.so
folder=$(pkg-config --variable=plugindir sinklab)
cp even.so "${folder//\\/}"
says 'even 1.0 row' "$sinklab" plugin info even
rm even.so "$prefix/lib/sinklab/plugins/even.so"

# The same with CMake, installed where sinklab looks.
cp "$source/even.c" "$source/CMakeLists.txt" .
{
  "$cmake" -S . -B out -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags"
  "$cmake" --build out
  "$cmake" --install out
} >log 2>&1 || {
  cat log
  fail "the CMake package failed"
}
says "even 1.0 row $prefix/lib/sinklab/plugins/even.so" \
  "$sinklab" plugin info even
says even "$sinklab" plugin list

# 'plugin new' for every shape, built unmodified by make, and one by CMake (the
# build files are the same), with the compiler of this build (and its flags) and with
# the other one.
compilers=("$cc")
for other in gcc clang; do
  if ! command -v "$other" >/dev/null; then
    echo "check_install: skipped: there is no $other here"
  elif [ "$(basename "$cc")" != "$other" ]; then
    compilers+=("$other")
  fi
done
for shape in row gate mixer; do
  for compiler in "${compilers[@]}"; do
    with=
    [ "$compiler" != "$cc" ] || with=$flags
    name=my_${shape}_$(basename "$compiler" | tr -c 'a-zA-Z0-9\n' _)
    says "$name: check" "$sinklab" plugin new "$shape" "$name" --dir=made
    folder=made/$name
    says "Werror $name.so" make -C "$folder" CC="$compiler" CFLAGS="-Werror $with"
    says "load ok $name.so: all checks hold" make -C "$folder" check \
      CC="$compiler" CFLAGS="-Werror $with"
    [ "$shape" = mixer ] || continue
    {
      "$cmake" -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$with" &&
        "$cmake" --build "$folder/build"
    } >log 2>&1 || {
      cat log
      fail "CMake does not build a new $shape with $compiler"
    }
    says '100% tests passed' \
      "$(dirname "$cmake")/ctest" --test-dir "$folder/build"
  done
done
echo ok
