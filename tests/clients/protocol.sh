#!/bin/sh
# The mysql or mariadb command-line client against the fixed answers of the example server.
# Usage: protocol.sh PORT [CLIENT]
set -eu
port=$1
client=${2:-mariadb}

run() { "$client" --no-defaults -h 127.0.0.1 -P "$port" -u "$@"; }
check() {
    if [ "$2" != "$3" ]; then
        echo "$1: '$2' instead of '$3'" >&2
        exit 1
    fi
    echo "ok  $1"
}

check 'empty password' "$(run root -N -e 'SELECT USER')" 'root@localhost'
check 'native password' "$(run native -psecret -N -e 'SELECT USER')" 'native@%'
check 'sha2 password' "$(run sha2 -psecret -N -e 'SELECT USER')" 'sha2@%'
check 'default database' "$(run root -N -e 'SELECT 1' shop)" '1'
check 'table' "$(run root -t -e 'SELECT 1')" "$(printf '+------+\n| 1    |\n+------+\n|    1 |\n+------+')"
check 'error' "$(run root -e 'NONSENSE' 2>&1 | grep -o '^ERROR [^:]*')" 'ERROR 1064 (42000) at line 1'
check 'access denied' "$(run sha2 -pwrong -e 'SELECT 1' 2>&1 | grep -o '^ERROR [^:]*')" 'ERROR 1045 (28000)'
