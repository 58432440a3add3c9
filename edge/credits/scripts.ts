import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript } from "../redis/script.ts";

/*
 * Scripts for a credit counter, which is a hash {rev, granted, spent, open}, and for two sets of key ids. Several processes change `spent`
 * concurrently, so each script reads and writes in one atomic step.
 */

/** `read_credits(key)`: rev, granted and spent, or nil. The length is checked first, because a field can have any size. */
const READ_CREDITS = `${SHARED_LUA}
local function read_credits(key)
  for _, field in ipairs({'rev', 'granted', 'spent'}) do
    local bytes = redis.pcall('HSTRLEN', key, field)
    if is_wrong_type(bytes) or bytes > 16 then return nil end
  end
  local stored = redis.call('HMGET', key, 'rev', 'granted', 'spent')
  local rev, granted, spent = whole(stored[1]), whole(stored[2]), whole(stored[3])
  if rev and granted and spent then return rev, granted, spent end
  return nil
end
`;

/**
 * Loads a counter. KEYS: the credits. ARGV: rev, granted, spent, the deadline. After the deadline the script does nothing and replies -1:
 * by then the loader has released its row lock, and another process may have closed the counter. A lower rev is rejected, so that a slow
 * loader cannot restore an old number. With the same rev the greater `spent` is kept. An invalid counter is replaced.
 */
export const LOAD = defineScript(
  { keys: 1, args: 4 },
  `${READ_CREDITS}
if now_ms() >= tonumber(ARGV[4]) then return -1 end
local known_rev, _, known_spent = read_credits(KEYS[1])
local rev, spent = tonumber(ARGV[1]), tonumber(ARGV[3])
if not known_rev then redis.call('DEL', KEYS[1]) end
if known_rev and known_rev > rev then return 0 end
if known_rev == rev then spent = math.max(spent, known_spent) end
redis.call('HSET', KEYS[1], 'rev', ARGV[1], 'granted', ARGV[2], 'spent', string.format('%.0f', spent), 'open', '1')
return 1
`,
);

/** Closes a counter and returns it. A missing counter is not created. KEYS: the credits. */
export const SUSPEND = defineScript(
  { keys: 1 },
  `${READ_CREDITS}
local rev, granted, spent = read_credits(KEYS[1])
if not rev then
  redis.call('DEL', KEYS[1])
  return false
end
redis.call('HSET', KEYS[1], 'open', '0')
return exact({rev, granted, spent})
`,
);

/** Removes a counter. After the deadline the script does nothing and replies -1. KEYS: the credits. ARGV: the deadline. */
export const REMOVE = defineScript(
  { keys: 1, args: 1 },
  `${SHARED_LUA}
if now_ms() >= tonumber(ARGV[1]) then return -1 end
return redis.call('DEL', KEYS[1])
`,
);

/** Returns a counter. KEYS: the credits. */
export const READ = defineScript(
  { keys: 1 },
  `${READ_CREDITS}
local rev, granted, spent = read_credits(KEYS[1])
if not rev then return false end
return exact({rev, granted, spent})
`,
);

/** Removes a key from the dirty set unless rev or spent have changed. KEYS: the credits, the dirty set. ARGV: the key's id, rev, spent. */
export const CLEAR_DIRTY = defineScript(
  { keys: 2, args: 3 },
  `${READ_CREDITS}
local rev, _, spent = read_credits(KEYS[1])
if rev and (rev ~= tonumber(ARGV[2]) or spent ~= tonumber(ARGV[3])) then return 0 end
local removed = redis.pcall('SREM', KEYS[2], ARGV[1])
if is_wrong_type(removed) then return redis.call('DEL', KEYS[2]) end
return removed
`,
);

/**
 * Takes random ids out of a set, so that ids that cannot be handled yet do not block the others. The total size is also bounded: members
 * can have any size, but overlong ones are not returned. A value that is not a set is deleted. KEYS: the set. ARGV: maximum ids, maximum
 * length of an id, 1 to keep the returned ids in the set. Reply: the number of members that were not ids, the number of remaining members,
 * the ids.
 */
export const TAKE_IDS = defineScript(
  { keys: 1, args: 3 },
  `${SHARED_LUA}
local size = redis.pcall('SCARD', KEYS[1])
if is_wrong_type(size) then
  redis.call('DEL', KEYS[1])
  return {1, 0}
end
local ids, refused, bytes = {}, 0, 0
while #ids + refused < tonumber(ARGV[1]) and bytes < 1048576 do
  local id = redis.call('SPOP', KEYS[1])
  if not id then break end
  bytes = bytes + #id
  if #id <= tonumber(ARGV[2]) then ids[#ids + 1] = id else refused = refused + 1 end
end
local left = redis.call('SCARD', KEYS[1])
if ARGV[3] == '1' and #ids > 0 then redis.call('SADD', KEYS[1], unpack(ids)) end
return {refused, left, unpack(ids)}
`,
);
