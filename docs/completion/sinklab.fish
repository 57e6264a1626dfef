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
