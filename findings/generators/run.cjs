// Generates IDs with packages of npm, and prints a line of each ID: the generator, the ID, the clock before and after the call in ms, and the
// shard number that the package was given.
const path = require('node:path');

const package = (name) => require(path.join(process.cwd(), 'node_modules', name));

function sample(name, shard, next, { gap = 3, spaced = 20, burst = 60 } = {}) {
  let last = Date.now();
  for (let n = 0; n < spaced + burst; n++) {
    // In the burst, no time is left between two IDs.
    while (n < spaced && Date.now() - last < gap);
    const before = Date.now();
    const id = next();
    last = Date.now();
    console.log([`npm ${name}`, BigInt(id), before, last, shard].join('\t'));
  }
}

const [WORKER, PROCESS] = [21, 11];
const NODE = WORKER * 32 + PROCESS;
const EPOCH = Date.UTC(2020, 0, 1);

const { DiscordSnowflake, TwitterSnowflake } = package('@sapphire/snowflake');
const ofNode = { workerId: BigInt(WORKER), processId: BigInt(PROCESS) };
sample('@sapphire/snowflake DiscordSnowflake', NODE, () => DiscordSnowflake.generate(ofNode));
sample('@sapphire/snowflake TwitterSnowflake', NODE, () => TwitterSnowflake.generate(ofNode));

const { Snowflake } = package('nodejs-snowflake');
const nodejs = new Snowflake({ custom_epoch: EPOCH, instance_id: 2731 });
sample('nodejs-snowflake', 2731, () => nodejs.getUniqueID());

const FlakeId = package('flake-idgen');
const flake = new FlakeId({ datacenter: WORKER, worker: PROCESS });
sample('flake-idgen', NODE, () => flake.next().readBigUInt64BE());

const SnowflakeId = package('snowflake-id').default;
const snowflakeId = new SnowflakeId({ mid: NODE });
sample('snowflake-id', NODE, () => snowflakeId.generate());

const akash = package('@akashrajpurohit/snowflake-id').SnowflakeId({ workerId: NODE });
sample('@akashrajpurohit/snowflake-id', NODE, () => akash.generate());

const nocobase = new (package('@nocobase/snowflake-id').Snowflake)({ workerId: WORKER });
sample('@nocobase/snowflake-id', WORKER, () => nocobase.generate(), { gap: 1100, spaced: 4 });

const tsid = new (package('tsid-ts').TSIDGenerator)(NODE);
sample('tsid-ts', NODE, () => tsid.create().toBigInt());

const yitter = new (package('simple-flakeid').SnowflakeIdv1)({ workerId: 41 });
sample('simple-flakeid (Yitter)', 41, () => yitter.NextBigId());

const { Sonyflake } = package('sonyflake');
const sonyflake = new Sonyflake({ machineId: 43691, epoch: EPOCH });
sample('sonyflake', 43691, () => sonyflake.nextId());

const generator = new (package('snowflake-generator').Generator)(undefined, 6827);
sample('snowflake-generator', 6827, () => generator.generate());

const simpleflakes = package('simpleflakes');
sample('simpleflakes', 0, () => simpleflakes.simpleflake());

const uuid = new (package('snowflake-uuid').Worker)(PROCESS, WORKER);
sample('snowflake-uuid', NODE, () => uuid.nextId());

const snowfall = new (package('snowfall'))({ workerID: BigInt(WORKER), processID: BigInt(PROCESS) });
sample('snowfall', NODE, () => snowfall.next());

const folks = package('@theinternetfolks/snowflake').Snowflake;
sample('@theinternetfolks/snowflake', NODE, () => folks.generate({ shard_id: NODE }));

const nodeSnowflake = package('node-snowflake').Snowflake;
nodeSnowflake.init({ data_center_id: WORKER, worker_id: PROCESS });
sample('node-snowflake', NODE, () => nodeSnowflake.nextId());
