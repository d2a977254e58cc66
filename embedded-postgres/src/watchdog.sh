#!/bin/sh
# Starts the server so that it cannot outlive the program that wanted it, however that program ends.
#
# usage: sh watchdog.sh DATA_DIR SIGNAL REMOVE POSTGRES [ARGUMENT...]      (standard input: a pipe, see below)
#
# The program holds the writing end of a pipe whose reading end is standard input here, and nobody else has it. The
# kernel closes it when the program ends, also by SIGKILL; then `read` fails and the server is told to stop.
# A line read means that the program has seen the server end and nothing is left to do.
#
# The watcher is started from a subshell that ends at once, so that it is not a child of the server: the
# server treats children that it does not know and that end badly as crashed backends.
# `exec` then makes this very process the server: the program signals it and waits for it without go-between.
data=$1 signal=$2 remove=$3
shift 3
exec 3<&0 </dev/null
(
  (
    exec >/dev/null 2>&1
    read -r _ <&3 && exit
    # Numbers are used again. The server is signalled only while its own file still says that it is this one.
    owner=
    read -r owner <"$data/postmaster.pid" && [ "$owner" = "$$" ] && kill "-$signal" "$$"
    if [ -n "$remove" ]; then
      tries=0
      while [ -e "$data/postmaster.pid" ] && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
      done
      rm -rf -- "$remove"
    fi
  ) &
)
exec 3<&-
exec "$@"
