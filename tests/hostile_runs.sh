#!/bin/sh
# hostile_runs.sh - pairs of processes in one directory, prunes against live runs, and
# run directories that somebody meant to do harm with: nothing is lost, nothing is left
# running. $1: the sinklab binary; $2: pairs and prunes (100 in the long test).
set -u
binary=$1 rounds=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "hostile_runs.sh: $*" >&2
  failures=$((failures + 1))
}

# A run of a tenth of a second that writes a mark of its own into three files.
cat >s.lua <<'END'
local lab = require "sinklab"
local opt = lab.options { mark = 0 }
local run = lab.run()
run:add("a", { mark = opt.mark })
local since = os.clock()
while os.clock() - since < 0.05 do end
run:array("x", lab.full({ 100 }, opt.mark))
run:csv("y", { { step = opt.mark, loss = opt.mark } })
run:add("b", { mark = opt.mark })
END

# What a directory holds must be of one process.
of_one_process() {
  mark=$(sed -n 's/.*"mark": \([0-9]*\).*/\1/p' "$1/run.json" | sort -u)
  [ "$(echo "$mark" | wc -w)" = 1 ] || fail "$1: marks of several processes: $mark"
  grep -q '"status": "complete"' "$1/run.json" || fail "$1: not complete"
  grep -q "^$mark,$mark" "$1/train-y.csv" || fail "$1: train-y.csv is of another process"
}

echo "== $rounds pairs of processes in one directory"
both=0
i=0
while [ $i -lt "$rounds" ]; do
  i=$((i + 1))
  "$binary" run s.lua --mark=1 --out=pair --threads=1 --quiet 2>err1 &
  first=$!
  "$binary" run s.lua --mark=2 --out=pair --threads=1 --quiet 2>err2 &
  second=$!
  wait $first
  one=$?
  wait $second
  two=$?
  [ $one = 0 ] || [ $two = 0 ] || fail "pair $i: neither ran: $one, $two"
  if [ $one = 0 ] && [ $two = 0 ]; then both=$((both + 1)); fi # one after the other
  for code in "$one $PWD/err1" "$two $PWD/err2"; do
    [ "${code%% *}" = 0 ] || grep -q "pair: a process works in it" "${code#* }" ||
      fail "pair $i: refused without a reason: $(cat "${code#* }")"
  done
  of_one_process pair
done
echo "$both pairs ran one after the other"

echo "== $rounds prunes against live runs"
mkdir -p runs/.trash
i=0
while [ $i -lt "$rounds" ]; do
  i=$((i + 1))
  "$binary" run s.lua --mark=$i --out=runs/r$i --threads=1 --quiet 2>err &
  live=$!
  "$binary" runs prune 'status~' --yes >out 2>&1            # refused while it runs
  "$binary" runs prune 'status!=running' --yes >out 2>&1    # those that have ended
  wait $live || fail "prune $i: the live run failed: $(cat err)"
  found=runs/r$i
  [ -e "$found" ] || found=runs/.trash/r$i
  of_one_process "$found"
done
kept=$(find runs runs/.trash -maxdepth 2 -name run.json | sort -u | wc -l)
[ "$kept" = "$rounds" ] || fail "$kept runs of $rounds are there"
echo "$(find runs/.trash -maxdepth 2 -name run.json | wc -l) of $rounds were moved to the trash"

echo "== hostile run directories"
mkdir -p bad outside/deep
echo kept >outside/deep/file
record='{"options":{},"results":{},"claims":[],"files":[],"status":"complete"}'
n=0
make() {
  n=$((n + 1))
  mkdir -p "bad/h$n"
  printf '%s' "$record" >"bad/h$n/run.json"
}
make && ln -s ../../outside "bad/h$n/link"
make && ln -s / "bad/h$n/root"
make && ln -s . "bad/h$n/self"
make && ln -s ../../outside/deep/file "bad/h$n/file"
make && mkfifo "bad/h$n/pipe"
make && rm "bad/h$n/run.json" && mkfifo "bad/h$n/run.json"
make && rm "bad/h$n/run.json" && ln -s /dev/zero "bad/h$n/run.json"
make && rm "bad/h$n/run.json" && mkdir "bad/h$n/run.json"
make && rm "bad/h$n/run.json" && ln -s ../../outside/deep/file "bad/h$n/run.json"
make && rm "bad/h$n/run.json" && ln -s run.json "bad/h$n/run.json"
make && printf '{' >"bad/h$n/run.json"
make && : >"bad/h$n/run.json"
make && head -c 100000 /dev/zero >"bad/h$n/run.json"
make && head -c 5000 /dev/urandom >"bad/h$n/run.json"
make && printf '%03000d' 0 | sed 's/0/[/g' >"bad/h$n/run.json"
make && printf '{"options":{"a":1e999},"results":{},"claims":[]}' >"bad/h$n/run.json"
make && printf '{"options":[],"results":[],"claims":{}}' >"bad/h$n/run.json"
make && printf '{"options":{},"results":{},"claims":[],"status":7,"seed":{},"wall_s":[]}' \
  >"bad/h$n/run.json"
make && printf '{"options":{},"results":{},"claims":[],"status":"\\u001b[31m\\u202e"}' \
  >"bad/h$n/run.json"
make && printf '{"options":{},"results":{},"claims":[],"script":"%s"}' \
  "'; drop table runs; --" >"bad/h$n/run.json"
make && ln -s ../../outside "bad/h$n/.lock"
make && mkdir "bad/h$n/.lock"
make && mkfifo "bad/h$n/.lock"
make && chmod 000 "bad/h$n/run.json"
make && mv "bad/h$n" "$(printf 'bad/a\033[31mb')"
make && mv "bad/h$n" "bad/with space and 'quote'"
make && mv "bad/h$n" "$(printf 'bad/new\nline')"
make && mv "bad/h$n" "bad/-rf"
make && mkdir -p "bad/h$n/$(printf '%0200d' 0)/$(printf '%0200d' 1)"
ln -s ../outside bad/linked
ln -s nowhere bad/broken
mkfifo bad/pipe
n=$((n + 1))
for command in "list" "list status=complete" "show last" "export csv" "best wall_s" \
  "prune status~ --yes" "restore" "restore --all" "prune status~ --yes" \
  "restore --empty --yes" "rebuild" "list"; do
  # shellcheck disable=SC2086
  timeout 20 "$binary" runs $command --runs=bad >out 2>&1 </dev/null
  code=$?
  [ $code -lt 2 ] || fail "runs $command ended with status $code: $(head -c 300 out)"
done
[ "$(cat outside/deep/file)" = kept ] || fail "a link was followed"
for folder in bad/*; do
  timeout 20 "$binary" report "$folder" --out=report.html >out 2>&1 </dev/null
  code=$?
  [ $code -lt 2 ] || fail "report of $folder ended with status $code"
done
echo "$n directories"

left=$(pgrep -f "$work" | grep -vx $$ || true)
[ -z "$left" ] || fail "processes are left: $left"
[ $failures = 0 ] || exit 1
echo "nothing lost, nothing left running"
