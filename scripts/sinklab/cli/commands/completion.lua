--- completion.lua - sinklab completion: completion scripts for shells.
--
-- The scripts are small and the same for every command: they hand the words typed so
-- far to `sinklab completion words`, which reads the table of commands.
local core = require "sinklab.core"
local scripts = {}

scripts.bash = [==[
# Completion of sinklab's command line for bash, made by: sinklab completion bash
_sinklab() {
  local line=${COMP_LINE:0:COMP_POINT} cur kind="" words=() reply=()
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=("") ;; esac
  cur=${words[${#words[@]}-1]}
  while IFS= read -r line; do
    case $line in
      :*) kind=${line#:} ;;
      *) reply+=("$line") ;;
    esac
  done < <(printf '%s\n' "${words[@]:1}" | "${words[0]}" completion words 2>/dev/null)
  # Bash ends a word at "=": only the text after it is replaced.
  case $cur in
    --*=*)
      reply=("${reply[@]#"${cur%%=*}="}")
      cur=${cur#*=} ;;
  esac
  COMPREPLY=("${reply[@]}")
  if [ "$kind" = file ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
  elif [ "$kind" = folder ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$cur")
  fi
  case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _sinklab sinklab
]==]

scripts.zsh = [==[
#compdef sinklab
# Completion of sinklab's command line for zsh, made by: sinklab completion zsh
_sinklab() {
  local line kind=""
  local -a full open
  while IFS= read -r line; do
    case $line in
      :*) kind=${line#:} ;;
      *=) open+=("$line") ;;
      *) full+=("$line") ;;
    esac
  done < <(print -rl -- "${(@Q)words[2,CURRENT]}" |
    ${(Q)words[1]} completion words 2>/dev/null)
  (( $#full )) && compadd -- "${full[@]}"
  (( $#open )) && compadd -S '' -- "${open[@]}"
  case $PREFIX in --*=*) compset -P '*=' ;; esac
  case $kind in
    file) _files ;;
    folder) _files -/ ;;
  esac
}
if [ "$funcstack[1]" = _sinklab ]; then _sinklab "$@"; else compdef _sinklab sinklab; fi
]==]

scripts.fish = [==[
# Completion of sinklab's command line for fish, made by: sinklab completion fish
function __sinklab_words
    set -l words (commandline -opc) (commandline -ct)
    for line in (printf '%s\n' $words[2..-1] | $words[1] completion words 2>/dev/null)
        switch $line
            case ':file'
                __fish_complete_path (commandline -ct)
            case ':folder'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c sinklab -f -a '(__sinklab_words)'
]==]

local shells = { "bash", "fish", "zsh" }

--- Candidates for the words on standard input, one a line; ":file" or ":folder" at the
-- end requests the shell's own paths.
local function words()
  local typed = {}
  for line in core.read_line do typed[#typed + 1] = line end
  if #typed == 0 then typed[1] = "" end
  local list, kind = require "sinklab.cli.complete" (typed)
  for _, word in ipairs(list) do print(word) end
  if kind then print(":" .. kind) end
end

local actions = {}
for i, shell in ipairs(shells) do
  actions[i] = { name = shell, doc = "print the completion script for " .. shell,
    run = function() io.write(scripts[shell]) end }
end
actions[#actions + 1] = { name = "words", run = words,
  doc = "candidates for the words on standard input (used by the scripts)" }

return {
  doc = "print a completion script for bash, fish or zsh",
  text = [[
The install puts these scripts into the folders of the shells. Without it, for bash:
source <(sinklab completion bash)]],
  actions = actions,
  scripts = scripts,
}
