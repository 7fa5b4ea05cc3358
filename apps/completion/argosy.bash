# Completion of the command argosy for bash; for zsh too: autoload -U bashcompinit && bashcompinit
# Installed where bash-completion looks; else: source this file.
# It asks the command itself, so that it knows what that knows: options from --help, names from --list.

_argosy_options() { # COMMAND…: the options that its help shows
  "$@" --help 2>/dev/null | grep -oE '(^|[ ,])--[a-z][a-z_]*' | tr -d ' ,' | sort -u
}

_argosy_names() { # COMMAND LIST: the names of a list
  "$1" train --list "$2" 2>/dev/null | grep -oE '^[a-z][a-z0-9_.-]*'
}

_argosy() {
  local argosy=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]-} words=() at
  if ((COMP_CWORD == 1)); then
    words=($("$argosy" --help | sed -nE 's/^  ([a-z-]+)  .*/\1/p'))
  elif [[ $command == launch ]]; then # options of the launcher until the program, then the program's own
    for ((at = 2; at < COMP_CWORD; ++at)); do
      if [[ ${COMP_WORDS[at]} == */argosy || ${COMP_WORDS[at]} == argosy ]]; then
        COMP_WORDS=("$argosy" "${COMP_WORDS[@]:at+1}")
        ((COMP_CWORD -= at))
        _argosy
        return
      fi
    done
    words=($(_argosy_options "$argosy" launch))
  else
    case $command$before in
      train--model | evaluate--model | predict--model | generate--model | estimate--model) words=($(_argosy_names "$argosy" models)) ;;
      train--optimizer) words=($(_argosy_names "$argosy" optimizers)) ;;
      train--schedule) words=($(_argosy_names "$argosy" schedules)) ;;
      train--augment) words=(none default $(_argosy_names "$argosy" augment)) ;;
      train--data | evaluate--data | predict--data) words=($(_argosy_names "$argosy" data)) ;;
      train--traffic) words=($(_argosy_names "$argosy" traffic)) ;;
      train--list) words=(models data optimizers schedules augment traffic all) ;;
      train--tokenizer | generate--tokenizer) words=(bytes) ;;
      train--mesh) words=(sharding dp= sharding= dp=2,sharding=) ;;
      train--sharding_stage) words=(1 2 3) ;;
      train--resume) words=(never auto must) ;;
      train--amp | evaluate--amp | predict--amp) words=(off bfloat16 float16) ;;
      train--device | evaluate--device | predict--device | generate--device) words=(auto cpu cuda gpu) ;;
      train--memory_format) words=(auto as_is contiguous channels_last) ;;
      evaluate--split | predict--split) words=(train valid test) ;;
      *) [[ $word == -* ]] && words=($(_argosy_options "$argosy" "$command")) ;;
    esac
  fi
  COMPREPLY=($(compgen -W "${words[*]}" -- "$word"))
}

# Files where nothing else fits: runs, checkpoints, pictures.
complete -o default -F _argosy argosy
