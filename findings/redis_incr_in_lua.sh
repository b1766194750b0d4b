#!/usr/bin/env bash
# A script of Redis 7.0.15 that returns redis.call('INCR', key) changes the last digits of a counter above 2^53, because Lua's numbers are
# floats. The counter itself is right, also if a script returns redis.call('GET', key), which is a string. Expected: the new value.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
unpack redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10
redis-server --port 0 --unixsocket "$folder/socket" --save '' >log &
trap 'kill $!; wait $! || true; rm -rf "$folder"' EXIT
redis() { redis-cli -s "$folder/socket" "$@"; }
until [[ $(redis PING 2>/dev/null) == PONG ]]; do sleep 0.1; done
redis SET key 2237826556821345370 >/dev/null
expect "INCR in a script" "$(redis EVAL "return redis.call('INCR', KEYS[1])" 1 key)" "2237826556821345280"
expect "GET in a script" "$(redis EVAL "return redis.call('GET', KEYS[1])" 1 key)" "2237826556821345371"
expect "INCR without a script" "$(redis INCR key)" "2237826556821345372"
