#!/usr/bin/env bash
# npm's sonyflake 1.1.2 counts milliseconds where Sony's format counts 10 ms, by default since 1970. So its IDs have 65 bits, and do not fit in
# a bigint. Expected: 63 bits, as of Sony's sonyflake.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
npm install --silent --no-audit --no-fund sonyflake@1.1.2 >/dev/null
cat >generate.js <<'JS'
const { Sonyflake } = require('sonyflake');
const id = BigInt(new Sonyflake({ machineId: 2 }).nextId());
console.log(id.toString(2).length, Math.abs(Number(id >> 24n) - Date.now()) < 1000);
JS
expect "bits, and whether the time is in ms since 1970" "$(node generate.js)" "65 true"
