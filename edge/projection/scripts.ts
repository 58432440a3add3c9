import { defineScript } from "../redis/script.ts";

/*
 * Lua scripts that write records and changes. A record is stored as `<projection id> <version> <json>` (a tombstone has no JSON), so that
 * scripts read its header without parsing the rest. The projection state is the hash {projectionId, complete, head, version, asOfMs,
 * runId}. It shares its slot with the change stream and its history, so that all three change atomically. An incomplete projection may have
 * `formerId`, and from its first heartbeat `previousId`: the projection whose records are used as long as the new projection does not have
 * them. The history is a hash {p, first}, the projection id and the lowest number that it may contain, with each entry in the field of its
 * number. `runId` identifies the server run in which the relay last checked the projection, because a restarted server may have rolled
 * back.
 */

/** Maximum number of entries in the history. A reader that is further behind detects the gap and starts from scratch. */
export const CHANGES_MAX = 100_000;
/**
 * Maximum number of entries in the stream. It contains only the newest entries, for which readers wait; a reader that has missed more reads
 * the history. The maximum is small, because one short XREAD can name the stream hundreds of times, which ACLs cannot prevent.
 */
const STREAM_ENTRIES_MAX = 4;

/** Maximum number of records per script call, because a script blocks Redis. */
export const RECORDS_PER_CALL = 200;
export const ENTRIES_PER_CALL = 500;
export const LAGGING_NAMED_MAX = 2_000;
/** Maximum bytes of the lagging workspaces: short ids, each with its lag in ms. */
const LAGGING_BYTES_MAX = 128 * LAGGING_NAMED_MAX;
/** Maximum bytes of the run ids of all masters in a cluster of 1,000, joined with `+`. */
const RUN_IDS_BYTES_MAX = 64 * 1024;
/**
 * Maximum bytes of a written record. It exceeds the 8 MiB above which readers reject records: if the script rejected such a record first,
 * the workspace would be restarted again and again.
 */
const WRITTEN_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum bytes of a record id. The longest id is that of an override: a namespace id and an identifier of up to 512 characters. */
const RECORD_ID_BYTES_MAX = 64 * 1024;

/** Time after which entries are removed. A reader that was disconnected for longer drops its complete cache anyway. */
const CHANGES_KEPT_MS = 15 * 60 * 1000;
/** Maximum number of entries that a heartbeat removes, because a script blocks Redis. */
const REMOVED_PER_HEARTBEAT = 1_000;

const IS_OLDER = `
-- Two relays can overlap for a moment; the slow one must not undo what the fast one wrote. A record of another projection is
-- always replaced: its versions may come from a database that was restored since.
local function is_older(stored)
  local projection, version = string.match(stored, '^(%S+) (%d+) ')
  return projection == ARGV[1] and tonumber(version) > tonumber(ARGV[2])
end
`;

/**
 * Writes records of one workspace: all in one call on a single Redis, one at a time and without the projection state on a cluster. KEYS:
 * the records, and on a single Redis the projection state as the last one. ARGV: projection id, version, number of records; then for each
 * its JSON ('': a tombstone) and its lifetime in ms ('': no expiry). Reply: 1, or -1 for another projection.
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
 * Variant of SET_RECORDS for a hash field. Fields do not expire by themselves, so a sorted set holds the times of tombstones, and each call
 * removes a few expired ones. KEYS: the hash, the sorted set of tombstones, and on a single Redis the projection state. ARGV: projection
 * id, version, JSON ('': a tombstone), tombstone lifetime in ms, the field. Reply: 1 written, 0 rejected as older, -1 another projection or
 * lost fields.
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
 * Begins a projection. KEYS: projection state, changes, history, and for the global stream the known workspaces. ARGV: projection id, '1'
 * if readers must drop their caches, '1' if records of the previous projection may be used if it was complete, and the server run id.
 * Reply: 1 begun, 0 already begun.
 */
export const BEGIN = defineScript(
  { keys: 4, args: 4, argBytes: RUN_IDS_BYTES_MAX },
  `
local known = redis.pcall('HGET', KEYS[1], 'projectionId')
if known == ARGV[1] then return 0 end
local was_complete = redis.pcall('HGET', KEYS[1], 'complete') == '1'
redis.call('DEL', KEYS[1])
redis.call('UNLINK', KEYS[3])
if KEYS[4] then redis.call('DEL', KEYS[4]) end
redis.call('HSET', KEYS[1], 'projectionId', ARGV[1], 'complete', '0', 'head', '0', 'version', '0', 'runId', ARGV[4])
if ARGV[3] == '1' and was_complete then redis.call('HSET', KEYS[1], 'formerId', known) end
local entry = {'p', ARGV[1], 'n', '0', 'k', 'begin', 'f', ARGV[2]}
local added = redis.pcall('XADD', KEYS[2], 'MAXLEN', ${STREAM_ENTRIES_MAX}, '*', unpack(entry))
if type(added) == 'table' then
  -- Not a stream, or a stream whose last id is the highest possible one.
  redis.call('DEL', KEYS[2])
  added = redis.call('XADD', KEYS[2], '*', unpack(entry))
end
redis.call('HSET', KEYS[3], 'p', ARGV[1], 'first', '0', '0', cjson.encode({added, unpack(entry, 5)}))
return 1
`,
);

/**
 * Appends entries, numbered without gaps. KEYS: projection state, changes, history. ARGV: projection id, number of entries to keep,
 * version, and kind, workspace, id for each change. Reply: the new head, or -1 for another projection.
 */
export const ANNOUNCE = defineScript(
  { keys: 3, args: 3 + 3 * ENTRIES_PER_CALL, argBytes: RECORD_ID_BYTES_MAX },
  `
if redis.call('HGET', KEYS[1], 'projectionId') ~= ARGV[1] then return -1 end
local count = (#ARGV - 3) / 3
local head = redis.call('HINCRBY', KEYS[1], 'head', count)
local n = head - count
local max = tonumber(ARGV[2])
local in_stream_from = math.max(1, count - ${STREAM_ENTRIES_MAX - 1})
local ids, kept, removed = {}, {}, {}
for i = in_stream_from, count do
  local a = 3 * i
  ids[i] = redis.call('XADD', KEYS[2], 'MAXLEN', ${STREAM_ENTRIES_MAX}, '*', 'p', ARGV[1], 'n', string.format('%.0f', n + i),
    'k', ARGV[a + 1], 'w', ARGV[a + 2], 'i', ARGV[a + 3], 'v', ARGV[3])
end
for i = 1, count do
  local a = 3 * i
  -- A reader that stands at an entry which the stream never had waits for those after the first that it has, and then finds the gap.
  local id = ids[i] or ids[in_stream_from]
  kept[2 * i - 1] = string.format('%.0f', n + i)
  kept[2 * i] = cjson.encode({id, 'k', ARGV[a + 1], 'w', ARGV[a + 2], 'i', ARGV[a + 3]})
  if n + i > max then removed[#removed + 1] = string.format('%.0f', n + i - max) end
end
redis.call('HSET', KEYS[3], unpack(kept))
if #removed > 0 then redis.call('HDEL', KEYS[3], unpack(removed)) end
if tonumber(ARGV[3]) > tonumber(redis.call('HGET', KEYS[1], 'version') or '0') then
  redis.call('HSET', KEYS[1], 'version', ARGV[3])
end
return head
`,
);

/**
 * Writes a heartbeat. KEYS: projection state, changes, history. ARGV: projection id, the time, the lagging workspaces on the global stream
 * ('': none), the lowest possible head, and the server run id. Reply: the new head, and '1' if the projection is complete; -1 for another
 * projection, and for one that was rolled back, because its data must not look fresher than it is.
 */
export const HEARTBEAT = defineScript(
  { keys: 3, args: 5, argBytes: LAGGING_BYTES_MAX },
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
local number = string.format('%.0f', n)
local entry = {'k', 'heartbeat', 't', ARGV[2]}
if ARGV[3] ~= '' then
  entry[#entry + 1] = 'l'
  entry[#entry + 1] = ARGV[3]
end
local id = redis.call('XADD', KEYS[2], 'MAXLEN', ${STREAM_ENTRIES_MAX}, '*', 'p', ARGV[1], 'n', number, unpack(entry))
-- Entries that are too old are removed, from the lowest number on.
local first = tonumber(redis.call('HGET', KEYS[3], 'first') or n)
local kept_from_ms = tonumber(redis.call('TIME')[1]) * 1000 - ${CHANGES_KEPT_MS}
local removed = {}
while first < n and #removed < ${REMOVED_PER_HEARTBEAT} do
  local field = string.format('%.0f', first)
  local old = redis.call('HGET', KEYS[3], field)
  if old and tonumber(string.match(old, '%d+')) >= kept_from_ms then break end
  removed[#removed + 1] = field
  first = first + 1
end
if #removed > 0 then redis.call('HDEL', KEYS[3], unpack(removed)) end
redis.call('HSET', KEYS[3], 'p', ARGV[1], 'first', string.format('%.0f', first), number, cjson.encode({id, unpack(entry)}))
return {n, mark[3]}
`,
);

/** Marks the projection complete. KEYS: projection state. ARGV: projection id, the highest version written without being announced. */
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
 * Reads a follower's start position: the projection state and the last entry, atomically. KEYS: projection state, changes. Reply:
 * projection id, head, time of the last heartbeat, id of the last entry ('' for each that does not exist), and Redis time, because times
 * must be compared with the clock of the same machine.
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
