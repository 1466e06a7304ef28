# bash completion for mcpboxctl. Install as
# /usr/share/bash-completion/completions/mcpboxctl.
#
# It knows nothing by itself: commands and their words come from the program's
# own usage, options from it as well, actions from `mcpboxctl call`. So it is
# never behind. No daemon is asked.

_mcpboxctl_usage() {
	"${COMP_WORDS[0]}" --help </dev/null 2>/dev/null
}

# Words that may stand behind COMMAND: lower case, at the beginning of an
# alternative of its usage. (Those within one, a|b, have no blanks.)
_mcpboxctl_words() {
	_mcpboxctl_usage | sed -n "s/^       mcpboxctl $1 \(.*\)/\1/p" | tr -d '[]' |
	    sed "s/([^)]*)//g; s/ | /\n/g" | sed -n "s/^$1 //; s/^ *\([a-z][a-z_-]*\).*/\1/p" | sort -u
}

_mcpboxctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local i command='' second=''

	COMPREPLY=()
	case $prev in
	--run-dir | --password-file | --key-file | --transfer-key | --journal | --jwks | --token | --ca | --out | -f)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--json | --all | --leave-unreadable | --yes | --discovery) ;;
	-*) return ;; # its value, which no usage lists
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--json | --all | --leave-unreadable | --yes | --discovery) ;;
		-*) ((i++)) ;;
		*)
			if [ -z "$command" ]; then
				command=${COMP_WORDS[i]}
			elif [ -z "$second" ]; then
				second=${COMP_WORDS[i]}
			fi
			;;
		esac
	done
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--help --version $(_mcpboxctl_usage |
		    grep -oE -e '--[a-z][a-z-]*' | sort -u)" -- "$cur")
	elif [ -z "$command" ] || [[ $command == help && -z $second ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_mcpboxctl_usage |
		    sed -n 's/^       mcpboxctl \([a-z-]*\).*/\1/p' | sort -u)" -- "$cur")
	elif [[ $command == access && $second == refresh ]]; then
		return # an issuer, which no usage lists
	elif [[ -n $second && ($command == openapi || $command == key || $command == access) ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == remote && $second == add ]]; then
		mapfile -t COMPREPLY < <(compgen -W "access oidc tailscale token worker" -- "$cur")
	elif [ -n "$second" ]; then
		return
	elif [ "$command" = call ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" call 2>/dev/null |
		    sed -n 's/^\([a-z_]*\).*/\1/p')" -- "$cur")
	elif [[ $command == import || $command == restore || $command == backup || $command == transfer-key ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W "$(_mcpboxctl_words "$command")" -- "$cur")
	fi
}
complete -o filenames -F _mcpboxctl mcpboxctl
