"""Generates IDs with packages of PyPI, and prints a line of each ID: the generator, the ID, the clock before and after the call in ms, and the
shard number that the package was given.

sonyflake and sonyflake-py contain modules of the same name, so sonyflake-py is in a folder of its own: `run.py sonyflake-py`."""

import sys
import time


def sample(name, shard, generate, gap=3, spaced=20, burst=60):
    last = time.time_ns() // 1_000_000
    for n in range(spaced + burst):
        # In the burst, no time is left between two IDs.
        while n < spaced and time.time_ns() // 1_000_000 - last < gap:
            pass
        before = time.time_ns() // 1_000_000
        number = int(generate())
        last = time.time_ns() // 1_000_000
        print(f"PyPI {name}", number, before, last, shard, sep="\t")


WORKER, PROCESS = 21, 11
NODE = WORKER * 32 + PROCESS
TEN_MS = {"gap": 11, "spaced": 12}


def sonyflake_py():
    from sonyflake import SonyFlake

    generator = SonyFlake(machine_id=lambda: 43691)
    sample("sonyflake-py", 43691, generator.next_id, **TEN_MS)


def all_others():
    from datetime import datetime, timezone

    from fity3 import generator as fity3
    from flakeid import PRESET_TWITTER, make_generator
    from hipopayflake import HipopayIDWorker
    from simpleflake import simpleflake
    from snowflake import SnowflakeGenerator
    from snowflake_id_toolkit import SonyflakeIDGenerator, TwitterSnowflakeIDGenerator
    from sonyflake import Sonyflake
    from sonyflake_turbo import SonyFlake as Turbo
    from tsidpy import TSID, TSIDGenerator
    from ulid_flake.api import UlidFlake

    sample("tsidpy TSID.create()", 0, lambda: TSID.create().number)
    of_node = TSIDGenerator(node=NODE)
    sample("tsidpy TSIDGenerator", NODE, lambda: of_node.create().number)
    sony = Sonyflake(machine_id=43691, start_time=datetime(2014, 9, 1, tzinfo=timezone.utc))
    sample("sonyflake", 43691, sony.next_id, **TEN_MS)
    turbo = Turbo(43691)
    sample("sonyflake-turbo", 43691, lambda: next(turbo), **TEN_MS)
    sample("snowflake-id-toolkit Twitter", NODE, TwitterSnowflakeIDGenerator(node_id=NODE).generate_next_id)
    sample("snowflake-id-toolkit Sony", 173, SonyflakeIDGenerator(node_id=173).generate_next_id, **TEN_MS)
    snowflake_id = SnowflakeGenerator(NODE)
    sample("snowflake-id", NODE, lambda: next(snowflake_id))
    sample("simpleflake", 0, simpleflake)
    sample("ulid-flake", 0, lambda: UlidFlake.new().int)
    fity = fity3(173)
    sample("python-fity3", 173, lambda: next(fity))
    sample("flakeid", NODE, make_generator(PRESET_TWITTER, datacenter_id=WORKER, machine_id=PROCESS).next_id)
    sample("hipopayflake", WORKER * 64 + 41, HipopayIDWorker(WORKER, 41, 0).next_id)


if sys.argv[1:] == ["sonyflake-py"]:
    sonyflake_py()
else:
    all_others()
