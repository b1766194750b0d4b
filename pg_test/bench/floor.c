/*
 * Functions with the arguments of snowflake_nextval() that do a part of its work for each ID. The bench compiles this file for the server
 * that it measures, and compares.
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#if PG_VERSION_NUM < 160000
#define RelFileLocator RelFileNode
#define rd_locator rd_node
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(floor_function);
PG_FUNCTION_INFO_V1(floor_clock);
PG_FUNCTION_INFO_V1(floor_lock);

/* Returns a constant. */
Datum
floor_function(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(42);
}

/* Reads the clock. */
Datum
floor_clock(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(GetCurrentTimestamp());
}

/* Reads the clock, and locks the page of the sequence, which it remembers from call to call. */
Datum
floor_lock(PG_FUNCTION_ARGS)
{
	static Oid	relid = InvalidOid;
	static RelFileLocator locator;
	static Buffer buffer = InvalidBuffer;
	TimestampTz now = GetCurrentTimestamp();

	if (relid != PG_GETARG_OID(0) || !ReadRecentBuffer(locator, MAIN_FORKNUM, 0, buffer))
	{
		Relation	sequence;

		relid = PG_GETARG_OID(0);
		sequence = relation_open(relid, RowExclusiveLock);
		locator = sequence->rd_locator;
		buffer = ReadBuffer(sequence, 0);
		relation_close(sequence, NoLock);
	}
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	UnlockReleaseBuffer(buffer);
	PG_RETURN_INT64(now);
}
