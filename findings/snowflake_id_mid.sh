#!/usr/bin/env bash
# npm's snowflake-id 1.1.0 takes `mid`, the number of a machine, modulo 1023, and 0 for 1. So the machines 0, 1 and 1024 have the number 1, and
# return the same IDs. Expected: the numbers from 0 to 1023, which 10 bits hold, are distinct.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
npm install --silent --no-audit --no-fund snowflake-id@1.1.0 >/dev/null
cat >generate.js <<'JS'
const SnowflakeId = require('snowflake-id').default;
const machine = (mid) => (BigInt(new SnowflakeId({ mid }).generate()) >> 12n) & 1023n;
console.log([0, 1, 1022, 1023, 1024].map((mid) => `${mid}: ${machine(mid)}`).join(', '));
JS
expect "machine in the ID" "$(node generate.js)" "0: 1, 1: 1, 1022: 1022, 1023: 0, 1024: 1"
