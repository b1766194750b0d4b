#!/usr/bin/env bash
# npm's node-snowflake 0.0.1 returns an ID several times: in a millisecond, its counter is 0 and then always 1. Expected: distinct IDs.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
npm install --silent --no-audit --no-fund node-snowflake@0.0.1 >/dev/null
cat >generate.js <<'JS'
const { Snowflake } = require('node-snowflake');
const ids = Array.from({ length: 10_000 }, () => String(Snowflake.nextId()));
const counters = new Set(ids.map((id) => String(BigInt(id) & 4095n)));
console.log(`${new Set(ids).size < ids.length} ${[...counters].sort()}`);
JS
expect "repeats, counters" "$(node generate.js)" "true 0,1"
