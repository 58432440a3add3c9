import { defineScript } from "../redis/script.ts";

/*
 * How records and changes are written. A record is stored as `<projection id> <version> <json>` (a tombstone has no JSON),
 * so that the scripts read its head without parsing the rest. The mark of a feed is the hash {projectionId, complete,
 * head, version, asOfMs, runId}; it shares its slot with the change stream, so that both change in one atomic step. An incomplete projection
 * may have `formerId`, and from its first heartbeat on `previousId`: the projection whose records are used where none is written yet.
 * `runId` is the run of the server in which the relay has last checked the projection: a server that restarted may have gone back in time.
 */

/** Older ones are trimmed, about; a reader that is so far behind notices the gap and starts again. */
export const CHANGES_MAX = 100_000;

/** Calls of the scripts are no larger than this, because Redis does nothing else meanwhile. */
export const RECORDS_PER_CALL = 200;
export const ENTRIES_PER_CALL = 500;
export const LAGGING_NAMED_MAX = 2_000;
/** Workspaces are named by their ids, which are shorter, with how far they lag in ms. */
const LAGGING_BYTES_MAX = 128 * LAGGING_NAMED_MAX;
/** Of all masters of a cluster of 1,000, with `+` between them. */
const RUN_IDS_BYTES_MAX = 64 * 1024;
/** Readers refuse records beyond 8 MiB. The scripts leave that to them: a refused write would begin the workspace again and again. */
const WRITTEN_BYTES_MAX = 64 * 1024 * 1024;
/** The longest is an override: the id of its namespace and an identifier of up to 512 characters. */
const RECORD_ID_BYTES_MAX = 64 * 1024;

/** Entries older than this are trimmed: a reader that was away for so long forgets everything anyway. */
const CHANGES_KEPT_MS = 15 * 60 * 1000;

const IS_OLDER = `
-- Two relays can overlap for a moment; the slow one must not undo what the fast one wrote. A record of another projection is
-- always replaced: its versions may come from a database that was restored since.
local function is_older(stored)
  local projection, version = string.match(stored, '^(%S+) (%d+) ')
  return projection == ARGV[1] and tonumber(version) > tonumber(ARGV[2])
end
`;

/**
 * Writes records of one workspace: all of them in one call on a single Redis, one by one without the mark on a cluster.
 * KEYS: the records, and on a single Redis the mark of their feed as the last one. ARGV: projection id, version, how many
 * records; and for each its JSON ('': a tombstone) and its lifetime in ms ('': for ever).
 * Reply: 1, or -1 for another projection.
 */
export const SET_RECORDS = defineScript(
  { keys: RECORDS_PER_CALL + 1, args: 3, argsPerKey: 2, argBytes: WRITTEN_BYTES_MAX },
  `${IS_OLDER}
local count = tonumber(ARGV[3])
if KEYS[count + 1] and redis.call('HGET', KEYS[count + 1], 'projectionId') ~= ARGV[1] then return -1 end
for i = 1, count do
  -- Pods can write here if the ACL allows it: a value that is not a string is replaced like an older record.
  local stored = redis.pcall('GETRANGE', KEYS[i], 0, 255)
  if type(stored) ~= 'string' or not is_older(stored) then
    local value = ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[2 * i + 2]
    if ARGV[2 * i + 3] == '' then redis.call('SET', KEYS[i], value)
    else redis.call('SET', KEYS[i], value, 'PX', ARGV[2 * i + 3]) end
  end
end
return 1
`,
);

/**
 * The same for a field of a hash. A field cannot expire by itself, so the times of tombstones are kept in a sorted set, and each
 * call removes a few that are due.
 * KEYS: the hash, the sorted set of tombstones, and on a single Redis the mark. ARGV: projection id, version, JSON ('': a
 * tombstone), how long a tombstone is kept in ms, the field. Reply: 1 written, 0 refused as older, -1 another projection,
 * or the fields were lost.
 */
export const SET_FIELD = defineScript(
  { keys: 3, args: 5, argBytes: WRITTEN_BYTES_MAX },
  `${IS_OLDER}
if KEYS[3] and redis.call('HGET', KEYS[3], 'projectionId') ~= ARGV[1] then return -1 end
-- A key of another type was written by others, over all fields that it had: they are lost.
local kind, gone_kind = redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok
if gone_kind ~= 'zset' and gone_kind ~= 'none' then redis.call('DEL', KEYS[2]) end
if kind ~= 'hash' and kind ~= 'none' then
  redis.call('DEL', KEYS[1])
  return -1
end
local stored = redis.call('HGET', KEYS[1], ARGV[5])
if stored and is_older(stored) then return 0 end
redis.call('HSET', KEYS[1], ARGV[5], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[3] == '' then
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + tonumber(ARGV[4])), ARGV[5])
else
  redis.call('ZREM', KEYS[2], ARGV[5])
end
for _, field in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 10)) do
  redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', KEYS[2], field)
end
return 1
`,
);

/**
 * KEYS: mark, changes, and for the central feed the known workspaces. ARGV: projection id, how many entries are kept, '1' if
 * readers must forget what they have, '1' if records of the previous projection may be used, if that one was complete, and the run of
 * the server.
 * Reply: 1 begun, 0 it had begun before.
 */
export const BEGIN = defineScript(
  { keys: 3, args: 5, argBytes: RUN_IDS_BYTES_MAX },
  `
local known = redis.pcall('HGET', KEYS[1], 'projectionId')
if known == ARGV[1] then return 0 end
local was_complete = redis.pcall('HGET', KEYS[1], 'complete') == '1'
redis.call('DEL', KEYS[1])
if KEYS[3] then redis.call('DEL', KEYS[3]) end
redis.call('HSET', KEYS[1], 'projectionId', ARGV[1], 'complete', '0', 'head', '0', 'version', '0', 'runId', ARGV[5])
if ARGV[4] == '1' and was_complete then redis.call('HSET', KEYS[1], 'formerId', known) end
local entry = {'p', ARGV[1], 'n', '0', 'k', 'begin', 'f', ARGV[3]}
local added = redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(entry))
if type(added) == 'table' then
  -- Not a stream, or a stream whose last id is the highest possible one.
  redis.call('DEL', KEYS[2])
  redis.call('XADD', KEYS[2], '*', unpack(entry))
end
return 1
`,
);

/**
 * Numbers the entries without a gap. KEYS: mark, changes. ARGV: projection id, how many entries are kept, version, and
 * kind, workspace, id for each change. Reply: the new head, -1 another projection.
 */
export const ANNOUNCE = defineScript(
  { keys: 2, args: 3 + 3 * ENTRIES_PER_CALL, argBytes: RECORD_ID_BYTES_MAX },
  `
if redis.call('HGET', KEYS[1], 'projectionId') ~= ARGV[1] then return -1 end
local count = (#ARGV - 3) / 3
local head = redis.call('HINCRBY', KEYS[1], 'head', count)
local n = head - count
for a = 4, #ARGV, 3 do
  n = n + 1
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'p', ARGV[1], 'n', string.format('%.0f', n), 'k', ARGV[a],
    'w', ARGV[a + 1], 'i', ARGV[a + 2], 'v', ARGV[3])
end
if tonumber(ARGV[3]) > tonumber(redis.call('HGET', KEYS[1], 'version') or '0') then
  redis.call('HSET', KEYS[1], 'version', ARGV[3])
end
return head
`,
);

/**
 * KEYS: mark, changes. ARGV: projection id, the time, on the central feed which workspaces lag ('': none), and the lowest head that is
 * possible; and the run of the server. Reply: the new head, and whether the projection is complete ('1'); -1 for another projection, or one that has gone
 * back in time, in which nothing may look fresher than it is.
 */
export const HEARTBEAT = defineScript(
  { keys: 2, args: 5, argBytes: LAGGING_BYTES_MAX },
  `
local mark = redis.call('HMGET', KEYS[1], 'projectionId', 'asOfMs', 'complete', 'formerId', 'head', 'runId')
if mark[1] ~= ARGV[1] or tonumber(mark[5]) < tonumber(ARGV[4]) then return -1 end
local n = redis.call('HINCRBY', KEYS[1], 'head', 1)
-- A relay that was suspended and woke up must not undo what the next one has written.
if tonumber(ARGV[2]) > tonumber(mark[2] or '0') then redis.call('HSET', KEYS[1], 'asOfMs', ARGV[2]) end
if mark[6] ~= ARGV[5] then redis.call('HSET', KEYS[1], 'runId', ARGV[5]) end
-- By now, what the store may have lost of the previous projection has been written again.
if mark[4] and tonumber(ARGV[2]) > 0 then
  redis.call('HSET', KEYS[1], 'previousId', mark[4])
  redis.call('HDEL', KEYS[1], 'formerId')
end
local entry = {'p', ARGV[1], 'n', string.format('%.0f', n), 'k', 'heartbeat', 't', ARGV[2]}
if ARGV[3] ~= '' then
  entry[#entry + 1] = 'l'
  entry[#entry + 1] = ARGV[3]
end
local oldest = string.format('%.0f', tonumber(redis.call('TIME')[1]) * 1000 - ${CHANGES_KEPT_MS})
redis.call('XADD', KEYS[2], 'MINID', '~', oldest, '*', unpack(entry))
return {n, mark[3]}
`,
);

/** KEYS: mark. ARGV: projection id, the highest version written without being announced. */
export const COMPLETE = defineScript(
  { keys: 1, args: 2 },
  `
if redis.call('HGET', KEYS[1], 'projectionId') ~= ARGV[1] then return -1 end
redis.call('HSET', KEYS[1], 'complete', '1')
redis.call('HDEL', KEYS[1], 'formerId', 'previousId')
if tonumber(ARGV[2]) > tonumber(redis.call('HGET', KEYS[1], 'version') or '0') then
  redis.call('HSET', KEYS[1], 'version', ARGV[2])
end
return 1
`,
);

/**
 * Where a follower begins: the mark and the last entry, read in one atomic step.
 * KEYS: mark, changes. Reply: projection id, head, time of the last heartbeat, id of the last entry ('' for each that does not
 * exist), and the clock: times must be compared with the clock of the same machine.
 */
export const POSITION = defineScript(
  { keys: 2 },
  `
local mark = redis.call('HMGET', KEYS[1], 'projectionId', 'head', 'asOfMs')
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', '1')
local time = redis.call('TIME')
return {mark[1] or '', mark[2] or '', mark[3] or '', last[1] and last[1][1] or '0-0', time[1], time[2]}
`,
);
