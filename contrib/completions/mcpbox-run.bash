# bash completion for mcpbox-run. Install as
# /usr/share/bash-completion/completions/mcpbox-run.
#
# Options come from the program's own usage, so it is never behind. After the
# program's name, the words are completed as that program's.

_mcpbox_run() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i=1

	COMPREPLY=()
	while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* ]]; do
		case ${COMP_WORDS[i]} in
		--allow-hooks | --explain | --json | --help | --version) ;;
		*) ((i++)) ;; # its value
		esac
		((i++))
	done
	if ((i < COMP_CWORD)); then
		declare -F _command_offset >/dev/null && _command_offset "$i"
		return
	fi
	if ((i == COMP_CWORD)); then
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null |
			    grep -oE -e '^  --[a-z][a-z-]*' | sort -u)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
		return
	fi
	case $prev in
	--ro | --ro-try | --rw) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--home-file | --profile) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--env) mapfile -t COMPREPLY < <(compgen -e -- "$cur") ;;
	esac
}

complete -F _mcpbox_run mcpbox-run
