# Completion of `shardwright` and `shardwright-mpi` for bash. Commands and options are asked of the program itself (its --help is printed from
# the option tables), so there is nothing here to keep up to date.

_shardwright_words()
{
    # Words of --help: commands, or options with their argument ("--mesh AXES").
    case $2 in
        '') "$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' ;;
        *) "$1" "$2" --help 2>/dev/null | sed -n 's/^  \(-[a-z], \|    \)\(--[a-z][a-z0-9-]*\)\( [A-Z]*\)\{0,1\}  .*/\2\3/p' ;;
    esac
}

_shardwright()
{
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' option argument

    COMPREPLY=()
    if [ "$COMP_CWORD" -gt 1 ]; then
        command=${COMP_WORDS[1]}
    fi
    if [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_shardwright_words "$program" '') --help --version" -- "$word")
        return
    fi
    case $before in
        -o) before=--output ;;
        -m) before=--mesh ;;
        -p) before=--plan ;;
        -r) before=--rank ;;
    esac
    local options=()
    while read -r option argument; do
        options+=("$option")
        if [ "$option" = "$before" ] && [ -n "$argument" ]; then
            case $argument in
                FILE | MODEL) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
                FOLDER) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
            esac
            return
        fi
    done < <(_shardwright_words "$program" "$command")
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "${options[*]}" -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}

complete -o filenames -o bashdefault -F _shardwright shardwright shardwright-mpi
