function __blescan_should_offer_completions_for_flags_or_options -a expected_commands
    set -l non_repeating_flags_or_options $argv[2..]
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __blescan_parse_tokens
    test "$commands" = "$expected_commands"; and return $non_repeating_flags_or_options_absent
end

function __blescan_should_offer_completions_for_positional -a expected_commands positional_index_comparison expected_positional_index
    set -l non_repeating_flags_or_options
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __blescan_parse_tokens
    test "$commands" = "$expected_commands" -a \( "$positional_index" "$positional_index_comparison" "$expected_positional_index" \)
end

function __blescan_parse_tokens -S
    set -l unparsed_tokens (__blescan_tokens -pc)
    switch $unparsed_tokens[1]
    case 'blescan'
        __blescan_parse_subcommand 0 'version' 'h/help'
        switch $unparsed_tokens[1]
        case 'scan'
            __blescan_parse_subcommand 0 'for=' 'n/count=' 'each=' 'format=' 'fields=' 'scanner-id=' 'redact' 'utc' 'j/json' 'heartbeat=' 'service=+' 'name=' 'address=+' 'company=+' 'min-rssi=' 'sensors' 'keys=' 'passive' 'long-range' 'recover=' 'i/adapter=' 'bonds=' 'record=' 'plain' 'color=' 'version' 'h/help'
        case 'explore'
            __blescan_parse_subcommand 1 'no-read' 'service=+' 'flat' 'color=' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'browse'
            __blescan_parse_subcommand 1 'color=' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'version' 'h/help'
        case 'read'
            __blescan_parse_subcommand -r 2 'raw' 'hex-only' 'format=' 'color=' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'write'
            __blescan_parse_subcommand 2 'hex=' 'text=' 'u8=' 'u16=' 'u32=' 'u64=' 'i8=' 'i16=' 'i32=' 'i64=' 'f32=' 'f64=' 'big-endian' 'file=' 'without-response' 'color=' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'notify'
            __blescan_parse_subcommand -r 2 'n/count=' 'for=' 'after=+' 'indications' 'hex-only' 'format=' 'color=' 'plot' 'utc' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'watch'
            __blescan_parse_subcommand -r 2 'every=' 'n/count=' 'for=' 'hex-only' 'format=' 'color=' 'plot' 'utc' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'talk'
            __blescan_parse_subcommand -r 2 'file=' 'utc' 'color=' 'mtu=' 'cache=' 'pair' 'passkey=' 'no-bond' 'i/adapter=' 't/timeout=' 'bonds=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'serve'
            __blescan_parse_subcommand 1 'socket=' 'i/adapter=' 'pairing=' 'bonds=' 'name=' 'advertise' 'no-advertise' 'for=' 'utc' 'color=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'advertise'
            __blescan_parse_subcommand 0 'name=' 'service=+' 'manufacturer=' 'ibeacon=' 'url=' 'eddystone-uid=' 'eddystone-tlm=' 'measured-power=' 'interval=' 'extended' 'management' 'i/adapter=' 'for=' 'color=' 'j/json' 'version' 'h/help'
        case 'pair'
            __blescan_parse_subcommand 1 'passkey=' 'require=' 'name=' 'i/adapter=' 't/timeout=' 'bonds=' 'color=' 'record=' 'v/trace' 'j/json' 'version' 'h/help'
        case 'forget'
            __blescan_parse_subcommand 1 'i/adapter=' 'bonds=' 'color=' 'j/json' 'version' 'h/help'
        case 'bonds'
            __blescan_parse_subcommand 0 'bonds=' 'utc' 'color=' 'j/json' 'version' 'h/help'
        case 'decode'
            __blescan_parse_subcommand 1 'hex=' 'keys=' 'color=' 'j/json' 'version' 'h/help'
        case 'replay'
            __blescan_parse_subcommand 1 'only=' 'check' 'as-fixture=' 'screen' 'speed=' 'as-scan' 'n/count=' 'each=' 'format=' 'fields=' 'scanner-id=' 'redact' 'utc' 'service=+' 'name=' 'address=+' 'company=+' 'min-rssi=' 'sensors' 'color=' 'j/json' 'hex=' 'keys=' 'version' 'h/help'
        case 'doctor'
            __blescan_parse_subcommand 0 'i/adapter=' 'connect=' 'bonds=' 'for=' 'no-scan' 'fix=+' 'record=' 'report' 'root=' 'color=' 'j/json' 'version' 'h/help'
        case 'selftest'
            __blescan_parse_subcommand 0 'i/adapter=' 'peer-adapter=' 'peer=' 'air' 'force' 'soak=' 'record=' 'redact' 'color=' 'j/json' 'version' 'h/help'
        case 'help'
            __blescan_parse_subcommand -r 1 'version'
        end
    end
end

function __blescan_tokens
    if test (string split -m 1 -f 1 -- . "$FISH_VERSION") -gt 3
        commandline --tokens-raw $argv
    else
        commandline -o $argv
    end
end

function __blescan_parse_subcommand -S -a positional_count
    argparse -s r -- $argv
    set -l option_specs $argv[2..]
    set -l is_repeating_positional $_flag_r
    set -el _flag_r
    set -a commands $unparsed_tokens[1]
    set positional_index 0
    while true
        set -e unparsed_tokens[1]
        argparse -sn "$commands" $option_specs -- $unparsed_tokens 2> /dev/null
        set unparsed_tokens $argv
        set positional_index (math $positional_index + 1)
        for non_repeating_flag_or_option in $non_repeating_flags_or_options
            if set -ql "_flag_$(string replace -a - _ -- $non_repeating_flag_or_option)"
                set non_repeating_flags_or_options_absent 1
                break
            end
        end
        test (count $unparsed_tokens) -eq 0 -o \( -z "$is_repeating_positional" -a "$positional_index" -gt "$positional_count" \) && break
    end
end

function __blescan_complete_directories
    set -l token (commandline -t)
    string match -- '*/' $token
    set -l subdirs $token*/
    printf %s\n $subdirs
end

function __blescan_custom_completion
    set -x SAP_SHELL fish
    set -x SAP_SHELL_VERSION $FISH_VERSION
    set -l tokens (__blescan_tokens -p)
    if test -z "$(__blescan_tokens -t)"
        set -l index (count (__blescan_tokens -pc))
        set tokens $tokens[..$index] \'\' $tokens[(math $index + 1)..]
    end
    command $tokens[1] $argv $tokens
end

complete -c 'blescan' -f
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'scan' -d 'List nearby devices, as they are heard.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'explore' -d 'Show what a peer offers: services, characteristics, descriptors and values.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'browse' -d 'Read, write and subscribe on a screen of a peer\'s attributes.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'read' -d 'Read values, however long.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'write' -d 'Write one value.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'notify' -d 'Print values as the peer sends them.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'watch' -d 'Read values again and again.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'talk' -d 'Perform several operations on one link.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'serve' -d 'Be a peripheral: serve services to centrals, and print what they do.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'advertise' -d 'Advertise: a name, services, data, or a beacon.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'pair' -d 'Pair with a peer and keep the bond.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'forget' -d 'Remove the bond with a peer.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'bonds' -d 'List the bonds.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'decode' -d 'Explain advertising data or HCI report events given in hexadecimal.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'replay' -d 'Print the packets of a recording, check them, or make a test of them.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'doctor' -d 'Find out why Bluetooth does not work here.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'selftest' -d 'Test whether an adapter is fit for use.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan" -eq 1' -fa 'help' -d 'Show subcommand help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" for' -l 'for' -d 'Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" count n' -l 'count' -s 'n' -d 'Stop after this number of lines.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" each' -l 'each' -d 'A line for each packet, for each change of what a device sends, or once for each device. (default: change)' -rfka 'packet\t change\t device\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" format' -l 'format' -d 'Output format: plain, json, csv, or theengs, which Theengs Gateway reads on its topic BTtoMQTT/undecoded.' -rfka 'plain\t json\t theengs\t csv\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" fields' -l 'fields' -d 'The columns of --format csv, separated by commas: t, address, name, rssi, temperature and others; a wrong one lists them all. Lines that repeat the last one about their device but for t and event, and in the default columns but for rssi, are left out, unless --each is packet.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" scanner-id' -l 'scanner-id' -d 'The name of this scanner in JSON objects. (default: the name of the host)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" redact' -l 'redact' -d 'Replace addresses, names and beacons\' identifiers in advertisements, also in the bytes, by numbers: for screenshots and bug reports. Serial numbers, identifiers in unknown formats, the models of sensors in their names, and names of one or two letters or in unknown encodings, stay: look before you publish. Recordings and the packets of links are not masked.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" j json' -l 'json' -s 'j' -d 'The same as --format json.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" heartbeat' -l 'heartbeat' -d 'Print a line in this interval that shows that the scan is running, even if nothing is heard.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan"' -l 'service' -d 'Only devices with this service: a UUID or a name. May be given several times.' -rfka '(__blescan_custom_completion ---completion scan -- --service (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" name' -l 'name' -d 'Only devices whose name contains this, in any case.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan"' -l 'address' -d 'Only this device: AA:BB:CC:DD:EE:FF. May be given several times.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan"' -l 'company' -d 'Only devices with data of this company: its number, 004c, or its name, apple. May be given several times.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" min-rssi' -l 'min-rssi' -d 'Only devices with an RSSI of at least this, such as -70.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" sensors' -l 'sensors' -d 'Only devices that send measurements, such as a temperature, in a known format.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" keys' -l 'keys' -d 'Decrypt BTHome, MiBeacon and Victron sensors with the keys in this file: lines of an address and 32 hex digits. Its owner alone may read it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" passive' -l 'passive' -d 'Only listen: request no scan responses.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" long-range' -l 'long-range' -d 'Listen on the coded PHY too, where the adapter can.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" recover' -l 'recover' -d 'How far recovery may go when the adapter has stopped reporting: none, rescan (begin the scan again), power (also switch the adapter off and on) or usb (also reset the device; needs bareble-recover). Each step is reported. With power and usb the scan waits for an adapter that goes away. (default: rescan, not reported)' -rfka 'none\t rescan\t power\t usb\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion scan -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" plain' -l 'plain' -d 'Print lines on a terminal too, instead of the live table.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan scan" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan explore" -eq 1' -fka '(__blescan_custom_completion ---completion explore -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" no-read' -l 'no-read' -d 'List the attributes without reading their values.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore"' -l 'service' -d 'Show only this service: a UUID or a name. May be given several times.' -rfka '(__blescan_custom_completion ---completion explore -- --service (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" flat' -l 'flat' -d 'Print one line for each attribute, with its service, for grep.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion explore -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan explore" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan browse" -eq 1' -fka '(__blescan_custom_completion ---completion browse -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion browse -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan browse" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan read" -eq 1' -fka '(__blescan_custom_completion ---completion read -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan read" -ge 2' -fka '(__blescan_custom_completion ---completion read -- positional@1 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" raw' -l 'raw' -d 'Write the bytes of one value as they are, to a file or another program.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" hex-only' -l 'hex-only' -d 'Print the bytes only.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" format' -l 'format' -d 'Output format: plain, json or csv.' -rfka 'plain\t json\t csv\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion read -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan read" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan write" -eq 1' -fka '(__blescan_custom_completion ---completion write -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan write" -eq 2' -fka '(__blescan_custom_completion ---completion write -- positional@1 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" hex' -l 'hex' -d 'The bytes: 05a0, 05:a0 or 05 a0.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" text' -l 'text' -d 'UTF-8 text; \\r, \\n, \\t, \\0, \\\\ and \\x1b stand for one character.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" u8' -l 'u8' -d 'A number in one byte: 10 or 0x0a.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" u16' -l 'u16' -d 'A number in two bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" u32' -l 'u32' -d 'A number in four bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" u64' -l 'u64' -d 'A number in eight bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" i8' -l 'i8' -d 'A signed number in one byte.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" i16' -l 'i16' -d 'A signed number in two bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" i32' -l 'i32' -d 'A signed number in four bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" i64' -l 'i64' -d 'A signed number in eight bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" f32' -l 'f32' -d 'A number of IEEE 754 in four bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" f64' -l 'f64' -d 'A number of IEEE 754 in eight bytes, low byte first.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" big-endian' -l 'big-endian' -d 'Write the number with its high byte first.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" file' -l 'file' -d 'A file whose bytes are the value; - is standard input.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" without-response' -l 'without-response' -d 'Do not request a response; at most MTU - 3 bytes.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion write -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan write" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan notify" -eq 1' -fka '(__blescan_custom_completion ---completion notify -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan notify" -ge 2' -fka '(__blescan_custom_completion ---completion notify -- positional@1 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" count n' -l 'count' -s 'n' -d 'Stop after this number of values, of all attributes together.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" for' -l 'for' -d 'Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify"' -l 'after' -d 'Once subscribed, write these bytes, which make the peer respond. May be given several times.' -rfka '(__blescan_custom_completion ---completion notify -- --after (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" indications' -l 'indications' -d 'Prefer indications where the characteristic has both.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" hex-only' -l 'hex-only' -d 'Print the bytes only.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" format' -l 'format' -d 'Output format: plain, json or csv.' -rfka 'plain\t json\t csv\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" plot' -l 'plot' -d 'Draw the numbers as a row of blocks; on a terminal the line is rewritten.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion notify -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan notify" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan watch" -eq 1' -fka '(__blescan_custom_completion ---completion watch -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan watch" -ge 2' -fka '(__blescan_custom_completion ---completion watch -- positional@1 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" every' -l 'every' -d 'The interval: 10s, 500ms, 1m30s; a bare number is seconds. (default: 5s)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" count n' -l 'count' -s 'n' -d 'Stop after this number of values, of all attributes together.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" for' -l 'for' -d 'Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" hex-only' -l 'hex-only' -d 'Print the bytes only.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" format' -l 'format' -d 'Output format: plain, json or csv.' -rfka 'plain\t json\t csv\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" plot' -l 'plot' -d 'Draw the numbers as a row of blocks; on a terminal the line is rewritten.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion watch -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan watch" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan talk" -eq 1' -fka '(__blescan_custom_completion ---completion talk -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" file' -l 'file' -d 'Read the operations from this file; - is standard input.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" mtu' -l 'mtu' -d 'Largest ATT packet to request, 23 to 517. (default: 517)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" cache' -l 'cache' -d 'Cache the peer\'s attributes in this file, valid while its Database Hash is unchanged; without a hash, only explore uses it. read uses it for handles and services, and never writes it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" pair' -l 'pair' -d 'Pair with the peer first, if there is no bond with it.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" passkey' -l 'passkey' -d 'The passkey for --pair: the one that the peer shows, or that is printed on it.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" no-bond' -l 'no-bond' -d 'Connect without encryption, also to a device that there is a bond with: another one may use its address.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion talk -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan talk" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan serve" -eq 1' -fka '(__blescan_custom_completion ---completion serve -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" socket' -l 'socket' -d 'Accept links on a Unix SEQPACKET socket, not on an adapter. It needs no rights.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion serve -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" pairing' -l 'pairing' -d 'Let centrals pair: ask (show and ask on the terminal), show (print a passkey, which is entered at the central), or just-works (accept each that comes, with nothing to compare).' -rfka 'ask\t show\t just-works\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" name' -l 'name' -d 'The device\'s name, in place of its own.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" advertise' -l 'advertise' -d 'Whether to advertise, so that centrals find the device.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" no-advertise' -l 'no-advertise' -d 'Whether to advertise, so that centrals find the device.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" for' -l 'for' -d 'Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan serve" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" name' -l 'name' -d 'The device\'s name.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise"' -l 'service' -d 'A service: a UUID or a name. May be given several times.' -rfka '(__blescan_custom_completion ---completion advertise -- --service (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" manufacturer' -l 'manufacturer' -d 'Data of a company: its number and the bytes.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" ibeacon' -l 'ibeacon' -d 'An iBeacon: its UUID, major and minor numbers.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" url' -l 'url' -d 'A web address, as an Eddystone-URL beacon.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" eddystone-uid' -l 'eddystone-uid' -d 'An Eddystone-UID beacon: 20 and 12 hexadecimal digits.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" eddystone-tlm' -l 'eddystone-tlm' -d 'Eddystone telemetry: millivolts/degrees Celsius, - for what is not measured; with /advertisements/seconds since power-on, 0/0 by default.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" measured-power' -l 'measured-power' -d 'The power that the beacon states: that of an iBeacon at 1 m, -59 by default; that of Eddystone-URL and Eddystone-UID at 0 m, -20 by default.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" interval' -l 'interval' -d 'Time between two advertisements, 20ms to 10.24s; 100ms by default.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" extended' -l 'extended' -d 'Send extended PDUs, which have more room, and which older devices do not receive.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" management' -l 'management' -d 'Have the kernel advertise, beside other programs and under an address of its choice. It needs CAP_NET_ADMIN.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion advertise -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" for' -l 'for' -d 'Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan advertise" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan pair" -eq 1' -fka '(__blescan_custom_completion ---completion pair -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" passkey' -l 'passkey' -d 'The passkey that the peer shows, or that is printed on it; nothing is asked then.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" require' -l 'require' -d 'What the pairing must achieve, or it fails: encrypted, legacy-passkey (a passkey, even if listeners can find it out), or authenticated (LE Secure Connections with a passkey or number). (default: encrypted)' -rfka 'encrypted\t legacy-passkey\t authenticated\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" name' -l 'name' -d 'A name for the bond, shown in the list of bonds.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" adapter i' -l 'adapter' -s 'i' -d 'Adapter to use: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion pair -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" t timeout' -l 'timeout' -s 't' -d 'Timeout of each step: connect, pair, discovery, a read, a write; not of values that the peer sends by itself: 10s, 500ms, 1m30s; a bare number is seconds. (default: 15s; 25s to pair, 60s for discovery)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" trace v' -l 'trace' -s 'v' -d 'Print every ATT packet to standard error.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan pair" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan forget" -eq 1' -fka '(__blescan_custom_completion ---completion forget -- positional@0 (count (__blescan_tokens -pc)) (__blescan_tokens -tC))'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" adapter i' -l 'adapter' -s 'i' -d 'Only the bond of this adapter: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion forget -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan forget" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" j json' -l 'json' -s 'j' -d 'Print one JSON object per line.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan bonds" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan decode" -eq 1' -F
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" hex' -l 'hex' -d 'The payload itself, instead of a file.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" keys' -l 'keys' -d 'Decrypt BTHome, MiBeacon and Victron sensors with the keys in this file: lines of an address and 32 hex digits. Its owner alone may read it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" j json' -l 'json' -s 'j' -d 'Print one JSON object per line, in the order of the input.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan decode" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan replay" -eq 1' -F
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" only' -l 'only' -d 'Print only these packets.' -rfka 'att\t hci\t adv\t l2cap\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" check' -l 'check' -d 'Check the recorded links against the protocol, instead of printing packets.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" as-fixture' -l 'as-fixture' -d 'Write each link to NAME.dialogue, NAME-2.dialogue and so on, as a test for ScriptedPeripheral.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" screen' -l 'screen' -d 'Show the advertisements in the live table of `scan`, as they came, and recorded links; q quits, ? shows the keys.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" speed' -l 'speed' -d 'How many times faster than recorded --screen shows them.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" as-scan' -l 'as-scan' -d 'Print the advertisements as `scan` does, instead of packets.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" count n' -l 'count' -s 'n' -d 'Stop after this number of lines.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" each' -l 'each' -d 'A line for each packet, for each change of what a device sends, or once for each device. (default: change)' -rfka 'packet\t change\t device\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" format' -l 'format' -d 'Output format: plain, json, csv, or theengs, which Theengs Gateway reads on its topic BTtoMQTT/undecoded.' -rfka 'plain\t json\t theengs\t csv\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" fields' -l 'fields' -d 'The columns of --format csv, separated by commas: t, address, name, rssi, temperature and others; a wrong one lists them all. Lines that repeat the last one about their device but for t and event, and in the default columns but for rssi, are left out, unless --each is packet.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" scanner-id' -l 'scanner-id' -d 'The name of this scanner in JSON objects. (default: the name of the host)' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" redact' -l 'redact' -d 'Replace addresses, names and beacons\' identifiers in advertisements, also in the bytes, by numbers: for screenshots and bug reports. Serial numbers, identifiers in unknown formats, the models of sensors in their names, and names of one or two letters or in unknown encodings, stay: look before you publish. Recordings and the packets of links are not masked.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" utc' -l 'utc' -d 'Print times in UTC, not in the time zone of this machine or of TZ.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay"' -l 'service' -d 'Only devices with this service: a UUID or a name. May be given several times.' -rfka '(__blescan_custom_completion ---completion replay -- --service (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" name' -l 'name' -d 'Only devices whose name contains this, in any case.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay"' -l 'address' -d 'Only this device: AA:BB:CC:DD:EE:FF. May be given several times.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay"' -l 'company' -d 'Only devices with data of this company: its number, 004c, or its name, apple. May be given several times.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" min-rssi' -l 'min-rssi' -d 'Only devices with an RSSI of at least this, such as -70.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" sensors' -l 'sensors' -d 'Only devices that send measurements, such as a temperature, in a known format.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" j json' -l 'json' -s 'j' -d 'Print one JSON object per packet, or for each link that was written, or for the check.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" hex' -l 'hex' -d 'Explain this payload as `decode --hex` does, instead of a file.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" keys' -l 'keys' -d 'Decrypt BTHome, MiBeacon and Victron sensors with the keys in this file: lines of an address and 32 hex digits. Its owner alone may read it.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan replay" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" adapter i' -l 'adapter' -s 'i' -d 'Check only this adapter: hci0, or its address.' -rfka '(__blescan_custom_completion ---completion doctor -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" connect' -l 'connect' -d 'Connect to this peer too, and measure the time.' -rfka '(__blescan_custom_completion ---completion doctor -- --connect (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" bonds' -l 'bonds' -d 'The directory of the bonds, in place of $XDG_STATE_HOME/bareble/bonds, or /var/lib/bareble/bonds for root.' -rfa '(__blescan_complete_directories)\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" for' -l 'for' -d 'How long to scan; 3s by default.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" no-scan' -l 'no-scan' -d 'Make no scan.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor"' -l 'fix' -d 'Fix this first: rfkill (clear the soft block), up (power on adapters), le (switch Low Energy on), stale-scan (end a stale scan), cycle (switch adapters off and on; not while a link is up). May be given several times.' -rfka 'rfkill\t up\t le\t stale-scan\t cycle\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" report' -l 'report' -d 'Print the data for a bug report, without addresses, names and the host\'s name.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" root' -l 'root' -d 'Diagnose a simulated machine: the files in this directory replace /proc, /sys and /dev, and its bluetooth.json the responses of sockets.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" j json' -l 'json' -s 'j' -d 'Print one JSON object per finding, and one with their counts.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan doctor" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" adapter i' -l 'adapter' -s 'i' -d 'The adapter: hci0, or its address; demo:NAME for a virtual one, demo:FILE.json for one that behaves as a report states.' -rfka '(__blescan_custom_completion ---completion selftest -- --adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" peer-adapter' -l 'peer-adapter' -d 'A second adapter, which advertises and serves for the checks of links.' -rfka '(__blescan_custom_completion ---completion selftest -- --peer-adapter (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" peer' -l 'peer' -d 'A device that accepts connections, for the checks of links.' -rfka '(__blescan_custom_completion ---completion selftest -- --peer (count (__blescan_tokens -pc)) (__blescan_tokens -tC))\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" air' -l 'air' -d 'Devices advertise nearby: if nothing is heard, the adapter is unfit.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" force' -l 'force' -d 'Run although links are up or another program scans; they end.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" soak' -l 'soak' -d 'Repeat the scans and connects for this time, and report the worst.' -rfka ''
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" record' -l 'record' -d 'Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO or, with -, to standard output: ` | wireshark -k -i -`. ATT packets are wrapped in synthetic ACL headers.' -rF
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" redact' -l 'redact' -d 'Leave addresses and names out of the report.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" color' -l 'color' -d 'Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)' -rfka 'auto\t always\t never\t'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" j json' -l 'json' -s 'j' -d 'Print the report as one JSON object, and nothing else.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan selftest" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_flags_or_options "blescan help" version' -l 'version' -d 'Show the version.'
complete -c 'blescan' -n '__blescan_should_offer_completions_for_positional "blescan help" -eq 1' -fa 'scan explore browse read write notify watch talk serve advertise pair forget bonds decode replay doctor selftest'
