"""Compares what the generators do with the table of docs/generators.md, and writes the data file of the tests.

Reads the lines that run.cjs, run.py and run.rs print. Fails if an ID has another time or shard than its generator had, or if a counter begins
elsewhere than the table says."""

import csv
import re
import sys
from datetime import datetime
from itertools import groupby, pairwise

PRESETS = {
    "twitter": "time:41 shard:10 seq:12 epoch:2010-11-04T01:42:54.657Z unit:1ms",
    "discord": "time:42 shard:10 seq:12 epoch:2015-01-01 unit:1ms",
    "mastodon": "time:48 shard:0 seq:16 epoch:1970-01-01 unit:1ms",
    "sonyflake": "time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms",
}
# 2026-11-28T17:20:42.357Z, the time of the IDs that are computed as the published source code does.
MS = 1_795_886_442_357
TWITTER_MS = 1_288_834_974_657
SHARDING_SPHERE_MS = 1_477_929_600_000
# A busy machine, a clock that a thread of the package reads from time to time, and counters that overflow into the coming ticks.
MOST_TICKS_FROM_CLOCK = 200
NODE = 21 * 32 + 11
# The ID, its time in ms, and its shard number.
OF_SOURCE = {
    "CockroachDB unique_rowid()": [((MS - 1_420_070_400_000) * 100 << 15 ^ 10_923, MS, 10_923)],
    "Hypersistence TSID and tsid-creator": [(MS - 1_577_836_800_000 << 22 | NODE << 12 | 2_748, MS, NODE)],
    "Yitter in other languages": [(MS - 1_582_136_402_000 << 12 | 41 << 6 | 5, MS, 41)],
    "Meituan Leaf": [(MS - TWITTER_MS << 22 | NODE << 12 | 73, MS, NODE)],
    "MyBatis-Plus": [(MS - TWITTER_MS << 22 | 21 << 17 | 11 << 12 | 2, MS, NODE)],
    "ShardingSphere": [(MS - SHARDING_SPHERE_MS << 22 | NODE << 12 | 1, MS, NODE)],
    # In 2020: the layout has ended since.
    "Baidu UidGenerator": [((1_600_000_000 - 1_463_673_600) << 35 | 2_796_203 << 13 | 9, 1_600_000_000_000, 2_796_203)],
    # The example of its README: 2017-01-19 12:15:46 in China, worker 4, sequence 9.
    "Baidu UidGenerator with its example configuration": [(180_363_646_902_239_241, 1_484_799_346_000, 4)],
    "Weibo": [((MS // 1_000 - 515_483_463) << 22 | 11 << 18 | 37, MS, 11)],
}
UNIT_US = {"10us": 10, "1ms": 1_000, "10ms": 10_000, "1s": 1_000_000}


class Layout:
    def __init__(self, text):
        parts = [part.split(":", 1) for part in PRESETS.get(text, text).split()]
        of = dict(parts)
        self.bits = {name: int(of[name]) for name in ("time", "shard", "seq")}
        self.order = [name for name, _ in parts[:3]]
        self.unit_us = UNIT_US[of["unit"]]
        epoch = of["epoch"] if of["epoch"].endswith("Z") else of["epoch"] + "T00:00:00Z"
        self.epoch_us = round(datetime.fromisoformat(epoch).timestamp() * 1_000) * 1_000

    def decode(self, number):
        fields = {}
        for name in reversed(self.order):
            fields[name] = number & (1 << self.bits[name]) - 1
            number >>= self.bits[name]
        assert number == 0, "more bits than the layout has"
        return fields["time"], fields["shard"], fields["seq"]

    def tick_at(self, unix_ms):
        return (unix_ms * 1_000 - self.epoch_us) // self.unit_us


def counter(decoded, seq_bits):
    """What the counter does: where it begins in each tick, and how it goes on."""
    per_tick = [[seq for _, _, seq in ids] for _, ids in groupby(decoded, key=lambda fields: fields[0])]
    # The tick in which the generator began may be older than its first ID.
    firsts = [seqs[0] for seqs in per_tick[1:]]
    steps = {(b - a) % 2**seq_bits for seqs in per_tick for a, b in pairwise(seqs)}
    across = {(b - a) % 2**seq_bits for (_, _, a), (_, _, b) in pairwise(decoded)}
    if across == {1}:
        begins = "never restarts"
    elif steps <= {0, 1}:
        begins = f"from {firsts[0]}" if len(set(firsts)) == 1 else "from random"
    else:
        begins = "random"
    # Random counters are repeated by chance, in some runs.
    return f"{begins}, repeats" if 0 in steps and begins != "random" else begins


def rows_of_page(path):
    for line in open(path, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[2].startswith("`"):
            yield cells[0].replace("`", ""), cells[1], cells[2].split("`")[1], cells[3]


def main(page, data):
    seen = {}
    for line in sys.stdin:
        name, *numbers = line.rstrip("\n").split("\t")
        seen.setdefault(name, []).append([int(number) for number in numbers])
    for name, ids in OF_SOURCE.items():
        seen[name] = [[number, ms, ms, shard] for number, ms, shard in ids]
    rows, wrong = [], []
    expected = list(rows_of_page(page))
    for name in seen.keys() ^ {name for name, *_ in expected}:
        wrong.append(f"{name}: only in one of the page and the run")
    for name, version, text, begins in expected:
        layout = Layout(text)
        ids = seen.get(name, [])
        decoded = [layout.decode(number) for number, *_ in ids]
        offsets = [fields[0] - layout.tick_at(before) for (_, before, *_), fields in zip(ids, decoded)]
        exact = [(number, before, shard) for (number, before, after, shard), offset in zip(ids, offsets) if before == after and offset == 0]
        if not exact or max(map(abs, offsets)) > MOST_TICKS_FROM_CLOCK:
            wrong.append(f"{name}: {max(map(abs, offsets), default=0)} ticks from the clock")
        if any(fields[1] != shard for (*_, shard), fields in zip(ids, decoded)):
            wrong.append(f"{name}: another shard")
        if version == "source":
            rows += [(name, version, text, *row) for row in exact]
            continue
        found = counter(decoded, layout.bits["seq"]) if decoded else "nothing"
        print(f"{name} {version}: {text}, counter {found}, {min(offsets)} to {max(offsets)} ticks from the clock")
        if found != begins:
            wrong.append(f"{name}: the counter is {found}, not {begins}")
        rows += [(name, version, text, *row) for row in (exact[0], exact[len(exact) // 2], exact[-1])]
    print(*wrong, sep="\n", file=sys.stderr)
    if not wrong and data:
        with open(data, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("generator", "version", "layout", "id", "unix_ms", "shard"))
            writer.writerows(rows)
    sys.exit(bool(wrong))


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
