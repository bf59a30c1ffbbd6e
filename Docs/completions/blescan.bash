#!/bin/bash

__blescan_cursor_index_in_current_word() {
    local remaining="${COMP_LINE}"

    local word
    for word in "${COMP_WORDS[@]::COMP_CWORD}"; do
        remaining="${remaining##*([[:space:]])"${word}"*([[:space:]])}"
    done

    local -ir index="$((COMP_POINT - ${#COMP_LINE} + ${#remaining}))"
    if [[ "${index}" -le 0 ]]; then
        printf 0
    else
        printf %s "${index}"
    fi
}

# positional arguments:
#
# - 1: the current (sub)command's count of positional arguments
#
# required variables:
#
# - repeating_flags: the repeating flags that the current (sub)command can accept
# - non_repeating_flags: the non-repeating flags that the current (sub)command can accept
# - repeating_options: the repeating options that the current (sub)command can accept
# - non_repeating_options: the non-repeating options that the current (sub)command can accept
# - positional_number: value ignored
# - unparsed_words: unparsed words from the current command line
#
# modified variables:
#
# - non_repeating_flags: remove flags for this (sub)command that are already on the command line
# - non_repeating_options: remove options for this (sub)command that are already on the command line
# - positional_number: set to the current positional number
# - unparsed_words: remove all flags, options, and option values for this (sub)command
__blescan_offer_flags_options() {
    local -ir positional_count="${1}"
    positional_number=0

    local was_flag_option_terminator_seen=false
    local is_parsing_option_value=false

    local -ar unparsed_word_indices=("${!unparsed_words[@]}")
    local -i word_index
    for word_index in "${unparsed_word_indices[@]}"; do
        if "${is_parsing_option_value}"; then
            # This word is an option value:
            # Reset marker for next word iff not currently the last word
            [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]] && is_parsing_option_value=false
            unset "unparsed_words[${word_index}]"
            # Do not process this word as a flag or an option
            continue
        fi

        local word="${unparsed_words["${word_index}"]}"
        if ! "${was_flag_option_terminator_seen}"; then
            case "${word}" in
            --)
                unset "unparsed_words[${word_index}]"
                # by itself -- is a flag/option terminator, but if it is the last word, it is the start of a completion
                if [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]]; then
                    was_flag_option_terminator_seen=true
                fi
                continue
                ;;
            -*)
                # ${word} is a flag or an option
                # If ${word} is an option, mark that the next word to be parsed is an option value
                local option
                for option in "${repeating_options[@]}" "${non_repeating_options[@]}"; do
                    [[ "${word}" = "${option}" ]] && is_parsing_option_value=true && break
                done

                # Remove ${word} from ${non_repeating_flags} or ${non_repeating_options} so it isn't offered again
                local not_found=true
                local -i index
                for index in "${!non_repeating_flags[@]}"; do
                    if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                        unset "non_repeating_flags[${index}]"
                        non_repeating_flags=("${non_repeating_flags[@]}")
                        not_found=false
                        break
                    fi
                done
                if "${not_found}"; then
                    for index in "${!non_repeating_flags[@]}"; do
                        if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                            unset "non_repeating_flags[${index}]"
                            non_repeating_flags=("${non_repeating_flags[@]}")
                            break
                        fi
                    done
                fi
                unset "unparsed_words[${word_index}]"
                continue
                ;;
            esac
        fi

        # ${word} is neither a flag, nor an option, nor an option value
        if [[ "${positional_number}" -lt "${positional_count}" || "${positional_count}" -lt 0 ]]; then
            # ${word} is a positional
            ((positional_number++))
            unset "unparsed_words[${word_index}]"
        else
            if [[ -z "${word}" ]]; then
                # Could be completing a flag, option, or subcommand
                positional_number=-1
            else
                # ${word} is a subcommand or invalid, so stop processing this (sub)command
                positional_number=-2
            fi
            break
        fi
    done

    unparsed_words=("${unparsed_words[@]}")

    if\
        ! "${was_flag_option_terminator_seen}"\
        && ! "${is_parsing_option_value}"\
        && [[ ("${cur}" = -* && "${positional_number}" -ge 0) || "${positional_number}" -eq -1 ]]
    then
        COMPREPLY+=($(compgen -W "${repeating_flags[*]} ${non_repeating_flags[*]} ${repeating_options[*]} ${non_repeating_options[*]}" -- "${cur}"))
    fi
}

__blescan_add_completions() {
    local completion
    while IFS='' read -r completion; do
        COMPREPLY+=("${completion}")
    done < <(IFS=$'\n' compgen "${@}" -- "${cur}")
}

__blescan_custom_complete() {
    if [[ -n "${cur}" || -z ${COMP_WORDS[${COMP_CWORD}]} || "${COMP_LINE:${COMP_POINT}:1}" != ' ' ]]; then
        local -ar words=("${COMP_WORDS[@]}")
    else
        local -ar words=("${COMP_WORDS[@]::${COMP_CWORD}}" '' "${COMP_WORDS[@]:${COMP_CWORD}}")
    fi

    "${COMP_WORDS[0]}" "${@}" "${words[@]}"
}

_blescan() {
    local state
    state="$(shopt -p;shopt -po)"
    trap "${state//$'\n'/;}" RETURN
    shopt -s extglob
    set +o history +o posix

    local -xr SAP_SHELL=bash
    local -x SAP_SHELL_VERSION
    SAP_SHELL_VERSION="$(IFS='.';printf %s "${BASH_VERSINFO[*]}")"
    local -r SAP_SHELL_VERSION

    local -r cur="${2}"
    local -r prev="${3}"

    local -i positional_number
    local -a unparsed_words=("${COMP_WORDS[@]:1:${COMP_CWORD}}")

    local -a repeating_flags=()
    local -a non_repeating_flags=(--version -h --help)
    local -a repeating_options=()
    local -a non_repeating_options=()
    __blescan_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    scan|explore|browse|read|write|notify|watch|talk|serve|advertise|pair|forget|bonds|decode|replay|doctor|selftest|help)
        # Offer subcommand argument completions
        "_blescan_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'scan explore browse read write notify watch talk serve advertise pair forget bonds decode replay doctor selftest help' -- "${cur}"))
        ;;
    esac
}

_blescan_scan() {
    repeating_flags=()
    non_repeating_flags=(--redact --utc --json -j --sensors --passive --long-range --plain --version -h --help)
    repeating_options=(--service --address --company)
    non_repeating_options=(--for --count -n --each --format --fields --scanner-id --heartbeat --name --min-rssi --keys --recover --adapter -i --bonds --record --color)
    __blescan_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--for')
        return
        ;;
    '--count'|'-n')
        return
        ;;
    '--each')
        __blescan_add_completions -W 'packet'$'\n''change'$'\n''device'
        return
        ;;
    '--format')
        __blescan_add_completions -W 'plain'$'\n''json'$'\n''theengs'$'\n''csv'
        return
        ;;
    '--fields')
        return
        ;;
    '--scanner-id')
        return
        ;;
    '--heartbeat')
        return
        ;;
    '--service')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion scan -- --service "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--name')
        return
        ;;
    '--address')
        return
        ;;
    '--company')
        return
        ;;
    '--min-rssi')
        return
        ;;
    '--keys')
        __blescan_add_completions -f
        return
        ;;
    '--recover')
        __blescan_add_completions -W 'none'$'\n''rescan'$'\n''power'$'\n''usb'
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion scan -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_blescan_explore() {
    repeating_flags=()
    non_repeating_flags=(--no-read --flat --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=(--service)
    non_repeating_options=(--color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--service')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion explore -- --service "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion explore -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion explore -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_browse() {
    repeating_flags=()
    non_repeating_flags=(--pair --no-bond --version -h --help)
    repeating_options=()
    non_repeating_options=(--color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion browse -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion browse -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_read() {
    repeating_flags=()
    non_repeating_flags=(--raw --hex-only --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--format --color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--format')
        __blescan_add_completions -W 'plain'$'\n''json'$'\n''csv'
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion read -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion read -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    *)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion read -- positional@1 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_write() {
    repeating_flags=()
    non_repeating_flags=(--big-endian --without-response --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--hex --text --u8 --u16 --u32 --u64 --i8 --i16 --i32 --i64 --f32 --f64 --file --color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--hex')
        return
        ;;
    '--text')
        return
        ;;
    '--u8')
        return
        ;;
    '--u16')
        return
        ;;
    '--u32')
        return
        ;;
    '--u64')
        return
        ;;
    '--i8')
        return
        ;;
    '--i16')
        return
        ;;
    '--i32')
        return
        ;;
    '--i64')
        return
        ;;
    '--f32')
        return
        ;;
    '--f64')
        return
        ;;
    '--file')
        __blescan_add_completions -f
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion write -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion write -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    2)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion write -- positional@1 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_notify() {
    repeating_flags=()
    non_repeating_flags=(--indications --hex-only --plot --utc --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=(--after)
    non_repeating_options=(--count -n --for --format --color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--count'|'-n')
        return
        ;;
    '--for')
        return
        ;;
    '--after')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion notify -- --after "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--format')
        __blescan_add_completions -W 'plain'$'\n''json'$'\n''csv'
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion notify -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion notify -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    *)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion notify -- positional@1 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_watch() {
    repeating_flags=()
    non_repeating_flags=(--hex-only --plot --utc --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--every --count -n --for --format --color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--every')
        return
        ;;
    '--count'|'-n')
        return
        ;;
    '--for')
        return
        ;;
    '--format')
        __blescan_add_completions -W 'plain'$'\n''json'$'\n''csv'
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion watch -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion watch -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    *)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion watch -- positional@1 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_talk() {
    repeating_flags=()
    non_repeating_flags=(--utc --pair --no-bond --trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--file --color --mtu --cache --passkey --adapter -i --timeout -t --bonds --record)
    __blescan_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--file')
        __blescan_add_completions -f
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--mtu')
        return
        ;;
    '--cache')
        __blescan_add_completions -f
        return
        ;;
    '--passkey')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion talk -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion talk -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_serve() {
    repeating_flags=()
    non_repeating_flags=(--advertise --no-advertise --utc --trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket --adapter -i --pairing --bonds --name --for --color)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion serve -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--pairing')
        __blescan_add_completions -W 'ask'$'\n''show'$'\n''just-works'
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--name')
        return
        ;;
    '--for')
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion serve -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_advertise() {
    repeating_flags=()
    non_repeating_flags=(--extended --management --json -j --version -h --help)
    repeating_options=(--service)
    non_repeating_options=(--name --manufacturer --ibeacon --url --eddystone-uid --eddystone-tlm --measured-power --interval --adapter -i --for --color)
    __blescan_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--name')
        return
        ;;
    '--service')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion advertise -- --service "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--manufacturer')
        return
        ;;
    '--ibeacon')
        return
        ;;
    '--url')
        return
        ;;
    '--eddystone-uid')
        return
        ;;
    '--eddystone-tlm')
        return
        ;;
    '--measured-power')
        return
        ;;
    '--interval')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion advertise -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--for')
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_blescan_pair() {
    repeating_flags=()
    non_repeating_flags=(--trace -v --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--passkey --require --name --adapter -i --timeout -t --bonds --color --record)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--passkey')
        return
        ;;
    '--require')
        __blescan_add_completions -W 'encrypted'$'\n''legacy-passkey'$'\n''authenticated'
        return
        ;;
    '--name')
        return
        ;;
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion pair -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout'|'-t')
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion pair -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_forget() {
    repeating_flags=()
    non_repeating_flags=(--json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--adapter -i --bonds --color)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion forget -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion forget -- positional@0 "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_blescan_bonds() {
    repeating_flags=()
    non_repeating_flags=(--utc --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--bonds --color)
    __blescan_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_blescan_decode() {
    repeating_flags=()
    non_repeating_flags=(--json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--hex --keys --color)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--hex')
        return
        ;;
    '--keys')
        __blescan_add_completions -f
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -f
        return
        ;;
    esac
}

_blescan_replay() {
    repeating_flags=()
    non_repeating_flags=(--check --screen --as-scan --redact --utc --sensors --json -j --version -h --help)
    repeating_options=(--service --address --company)
    non_repeating_options=(--only --as-fixture --speed --count -n --each --format --fields --scanner-id --name --min-rssi --color --hex --keys)
    __blescan_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--only')
        __blescan_add_completions -W 'att'$'\n''hci'$'\n''adv'$'\n''l2cap'
        return
        ;;
    '--as-fixture')
        return
        ;;
    '--speed')
        return
        ;;
    '--count'|'-n')
        return
        ;;
    '--each')
        __blescan_add_completions -W 'packet'$'\n''change'$'\n''device'
        return
        ;;
    '--format')
        __blescan_add_completions -W 'plain'$'\n''json'$'\n''theengs'$'\n''csv'
        return
        ;;
    '--fields')
        return
        ;;
    '--scanner-id')
        return
        ;;
    '--service')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion replay -- --service "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--name')
        return
        ;;
    '--address')
        return
        ;;
    '--company')
        return
        ;;
    '--min-rssi')
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    '--hex')
        return
        ;;
    '--keys')
        __blescan_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __blescan_add_completions -f
        return
        ;;
    esac
}

_blescan_doctor() {
    repeating_flags=()
    non_repeating_flags=(--no-scan --report --json -j --version -h --help)
    repeating_options=(--fix)
    non_repeating_options=(--adapter -i --connect --bonds --for --record --root --color)
    __blescan_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion doctor -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--connect')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion doctor -- --connect "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--bonds')
        __blescan_add_completions -d
        return
        ;;
    '--for')
        return
        ;;
    '--fix')
        __blescan_add_completions -W 'rfkill'$'\n''up'$'\n''le'$'\n''stale-scan'$'\n''cycle'
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    '--root')
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_blescan_selftest() {
    repeating_flags=()
    non_repeating_flags=(--air --force --redact --json -j --version -h --help)
    repeating_options=()
    non_repeating_options=(--adapter -i --peer-adapter --peer --soak --record --color)
    __blescan_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--adapter'|'-i')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion selftest -- --adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--peer-adapter')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion selftest -- --peer-adapter "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--peer')
        __blescan_add_completions -W "$(__blescan_custom_complete ---completion selftest -- --peer "${COMP_CWORD}" "$(__blescan_cursor_index_in_current_word)")"
        return
        ;;
    '--soak')
        return
        ;;
    '--record')
        __blescan_add_completions -f
        return
        ;;
    '--color')
        __blescan_add_completions -W 'auto'$'\n''always'$'\n''never'
        return
        ;;
    esac
}

_blescan_help() {
    repeating_flags=()
    non_repeating_flags=(--version)
    repeating_options=()
    non_repeating_options=()
    __blescan_offer_flags_options -1

    # Offer the commands
    [[ "${positional_number}" -ne 1 ]] || __blescan_add_completions -W 'scan'$'\n''explore'$'\n''browse'$'\n''read'$'\n''write'$'\n''notify'$'\n''watch'$'\n''talk'$'\n''serve'$'\n''advertise'$'\n''pair'$'\n''forget'$'\n''bonds'$'\n''decode'$'\n''replay'$'\n''doctor'$'\n''selftest'
}

_blescan_whole_words() {
    local -a words=()
    local word blanks rest="${COMP_LINE}" last=''
    local -i index current=0
    for index in "${!COMP_WORDS[@]}"; do
        word="${COMP_WORDS[index]}"
        blanks="${rest%%[![:space:]]*}"
        rest="${rest#"${blanks}"}"
        rest="${rest#"${word}"}"
        if ((index > 0)) && [[ -z "${blanks}" && ("${word}" = :* || "${last}" = *:) ]]; then
            words[${#words[@]} - 1]+="${word}"
        else
            words+=("${word}")
        fi
        last="${words[${#words[@]} - 1]}"
        ((index == COMP_CWORD)) && current=$((${#words[@]} - 1))
    done

    local whole="${words[current]}" typed="${2}"
    local -i after=0
    if [[ "${whole}" = *:* ]]; then
        # What follows the cursor is not a part of the word to complete.
        [[ "${COMP_WORDS[COMP_CWORD]}" = :* ]] || after=$((${#COMP_WORDS[COMP_CWORD]} - ${#typed}))
        typed="${whole:0:${#whole} - after}"
    fi

    local -a COMP_WORDS=("${words[@]}")
    local -i COMP_CWORD=current
    _blescan "${1}" "${typed}" "${words[current - 1]}"

    local -r start="${typed%"${typed##*:}"}"
    if [[ "${COMP_WORDBREAKS}" = *:* && -n "${start}" ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${start}"}")
    fi
    # More follows a colon, a slash or an equals sign.
    [[ "${#COMPREPLY[@]}" -eq 1 && "${COMPREPLY[0]}" = *[:/=] ]] && compopt -o nospace 2> /dev/null
    return 0
}

complete -o filenames -F _blescan_whole_words blescan
