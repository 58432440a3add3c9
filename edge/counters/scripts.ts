import { CLOCK_BEHIND_MS_MAX } from "../../core/ratelimits/window.ts";
import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript } from "../redis/script.ts";

/*
 * The arithmetic of core/ratelimits/window.ts in Lua, so that reading, deciding and counting are atomic across processes. Lua numbers are
 * doubles too. Stored numbers are written with %.0f, because Lua prints 10^15 as 1e+15. The clock is the one of Redis. Replies contain the
 * counts before the call; the caller computes the outcomes with the functions in core/ratelimits.
 */

/** Maximum requests, counters and credits per call, because a script blocks Redis. */
export const CONSUME_REQUESTS_MAX = 32;
export const CONSUME_KEYS_MAX = 512;
/** Maximum bytes of all texts in a call. The text of a request with 100 limits has 5 KiB. */
export const CONSUME_TEXT_BYTES_MAX = 32 * 1024;
export const SYNC_KEYS_MAX = 200;

/**
 * `read_counter(key, duration, now)`: window, current, previous and the time to use (the start of the stored window if the clock is behind
 * it), and true if the stored window is the current one. Counts that are not integers, or that come from a clock far ahead, are ignored.
 * `write_counter(key, duration, window, is_current, current, current_more, previous, previous_more)`: adds to a counter. It uses only
 * HINCRBY, so that a gate's user may write only numbers, whose size is bounded. The expiry that the first call of a window sets is after
 * the end of the next window, so it is not set again.
 */
const READ_COUNTER = `${SHARED_LUA}
local function read_counter(key, duration, now)
  local seq = math.floor(now / duration)
  local stored = read_hash(key, 'window', 'current', 'previous')
  local window, current, previous = whole(stored[1]), whole(stored[2]), whole(stored[3])
  local is_usable = window and current and previous and window * duration - now <= math.max(duration, ${CLOCK_BEHIND_MS_MAX})
  if not is_usable then return seq, 0, 0, now end
  if window > seq then return window, current, previous, window * duration end
  if window == seq then return window, current, previous, now, true end
  if window == seq - 1 then return seq, 0, current, now end
  return seq, 0, 0, now
end
local function portion_of(amount, part, whole)
  local product = amount * part
  if product <= 9007199254740991 then return math.floor(product / whole) end
  local rest = amount % whole
  local high = rest * math.floor(part / 65536)
  local low = (high % whole) * 65536 + rest * (part % 65536)
  return math.floor(amount / whole) * part + math.floor(high / whole) * 65536 + math.floor(low / whole)
end
local function used(window, current, previous, duration, at)
  if previous == 0 then return current end
  return current + portion_of(previous, duration - (at - window * duration), duration)
end
local function add_to_field(key, field, amount)
  return amount == 0 or type(redis.pcall('HINCRBY', key, field, string.format('%d', amount))) == 'number'
end
local function write_counter(key, duration, window, is_current, current, current_more, previous, previous_more)
  if is_current and add_to_field(key, 'current', current_more) and add_to_field(key, 'previous', previous_more) then return end
  redis.call('UNLINK', key)
  redis.call('HINCRBY', key, 'window', string.format('%d', window))
  redis.call('HINCRBY', key, 'current', string.format('%d', current + current_more))
  redis.call('HINCRBY', key, 'previous', string.format('%d', previous + previous_more))
  redis.call('PEXPIRE', key, string.format('%d', 2 * duration))
end
`;

/**
 * Spends credits from one counter. Returns status (1 spent, 2 refused, 3 not loaded or closed) and the remaining credits. A counter whose
 * fields are not integers counts as not loaded; the loader replaces it. Requires SHARED_LUA.
 */
const SPEND = `
local function open_credits(key)
  local stored = read_hash(key, 'granted', 'spent', 'open')
  local granted, spent = whole(stored[1]), whole(stored[2])
  if stored[3] == '1' and granted and spent then return granted, spent end
  return nil
end
local function spend(key, cost)
  local granted, spent = open_credits(key)
  if not granted then return 3, -1 end
  if spent + cost > granted then return 2, math.max(0, granted - spent) end
  if cost > 0 and type(redis.pcall('HINCRBY', key, 'spent', string.format('%.0f', cost))) ~= 'number' then return 3, -1 end
  return 1, granted - spent - cost
end
`;

/**
 * Decides any request. `consume(first, keys, text, deadline)` decides the request in `text`, whose `keys` keys follow KEYS[first], at the
 * time `now`, and returns the reply as text. Requests of one rule have equal texts, which are parsed once. A request can count only on its
 * own keys, so the cost of a call is bounded by its keys and its text.
 */
const CONSUME_ANY = `${READ_COUNTER}${SPEND}
local function words_of(text)
  local words = {}
  -- The fifth is the key's id, which may look like a number.
  for word in string.gmatch(text, '[^ ]+') do words[#words + 1] = #words ~= 4 and tonumber(word) or word end
  return words
end
local known = {}
local function consume(first, keys, text, deadline)
  local args = known[text] or words_of(text)
  known[text] = args
  local counters = args[2]
  if keys ~= counters + (args[4] == '-' and 0 or 3) then error('keys') end
  if now >= deadline then return exact({now, -1}) end
  local reply = {now, 1}
  local windows, currents, previouses, moments, are_current, costs = {}, {}, {}, {}, {}, {}
  for i = 1, counters do
    costs[i] = 0
    windows[i], currents[i], previouses[i], moments[i], are_current[i] = read_counter(KEYS[first + i], args[5 + i], now)
    local at = 3 * i
    reply[at], reply[at + 1], reply[at + 2] = windows[i], currents[i], previouses[i]
  end
  local passed = true
  for a = 6 + counters, #args, 3 do
    local i, limit, cost = args[a], args[a + 1], args[a + 2]
    local effective = used(windows[i], currents[i] + costs[i], previouses[i], args[5 + i], moments[i]) + cost
    if limit <= 0 or effective > limit then
      passed = false
      break
    end
    costs[i] = costs[i] + cost
  end
  if passed and args[3] ~= 1 then
    for i = 1, counters do
      if costs[i] > 0 then
        write_counter(KEYS[first + i], args[5 + i], windows[i], are_current[i], currents[i], costs[i], previouses[i], 0)
      end
    end
  end
  if not passed then reply[2] = 0 end
  if args[4] ~= '-' then
    local credits, status, remaining = first + counters, 0, -1
    if passed then
      status, remaining = spend(KEYS[credits + 1], args[4])
      if status == 1 and args[4] > 0 then add_to_set(KEYS[credits + 2], args[5]) end
      if status == 3 then add_to_set(KEYS[credits + 3], args[5]) end
    else
      local granted, spent = open_credits(KEYS[credits + 1])
      if granted then remaining = math.max(0, granted - spent) end
    end
    reply[#reply + 1] = status
    reply[#reply + 1] = remaining
  end
  return exact(reply)
end
`;

/**
 * Decides the limits and the credits of one or more requests, in order. Each request is atomic, and a request that fails does not affect
 * the others. One command serves all requests, because a command itself costs the client and the server more than the work in it.
 *
 * Nearly every request is plain: one limit, on a counter whose window has begun. Two commands decide it. The expiry need not be set,
 * because the first request of the window has set one that is late enough for all. Every other request, such as the first of a window, is
 * decided by `consume`, which is created on first use, because creating its functions takes longer than a plain request.
 *
 * KEYS: the keys of all requests. For each the C counters; then, if credits are spent: the credits, the set of dirty ones, the set of
 *       those to be loaded.
 * ARGV: for each request a text; then for each its deadline. After the deadline the caller no longer waits, so no units may be
 *       consumed. The text of a plain request: the duration, the limit and the cost, separated by spaces. The text of any other, each
 *       followed by a space: the number of its keys, C, '1' to decide without consuming, the cost in credits and the key's id, or
 *       '-' for each, C durations, and for each charge the number of its counter, its limit and its cost.
 * Reply: a JSON array with one array per request, or null for one that failed: now, 1 if all limits passed, and for each counter
 *        the window, current and previous from before; with credits also their status (0: a limit refused first) and
 *        the remaining credits (-1: unknown). After the deadline: now, -1.
 */
export const CONSUME = defineScript(
  { keys: CONSUME_KEYS_MAX, args: 2 * CONSUME_REQUESTS_MAX, argBytes: CONSUME_TEXT_BYTES_MAX },
  `
local bytes = 0
for i = 1, #ARGV do bytes = bytes + #ARGV[i] end
if bytes > ${CONSUME_TEXT_BYTES_MAX} + 64 * ${CONSUME_REQUESTS_MAX} then return redis.error_reply('ERR too long texts for one call') end
local pcall_redis, floor, format = redis.pcall, math.floor, string.format
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local function is_count(number) return number and number >= 0 and number <= 9007199254740991 and number % 1 == 0 end
local function consume_plain(key, deadline, duration, limit, cost)
  if now >= deadline then return format('[%d,-1]', now) end
  local stored = pcall_redis('HMGET', key, 'window', 'current', 'previous')
  local window, current, previous = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3])
  if window ~= floor(now / duration) or not is_count(current) or not is_count(previous) then return nil end
  local carried = previous * (duration - (now - window * duration))
  if carried > 9007199254740991 then return nil end
  local passed = 0
  if limit > 0 and current + floor(carried / duration) + cost <= limit then
    passed = 1
    if cost > 0 and type(pcall_redis('HINCRBY', key, 'current', format('%d', cost))) ~= 'number' then return nil end
  end
  return format('[%d,%d,%d,%d,%d]', now, passed, window, current, previous)
end
local function any() ${CONSUME_ANY} return consume end
local count = #ARGV / 2
local replies, first, consume = {}, 0, nil
local read, duration, limit, cost
for at = 1, count do
  local text, deadline, reply = ARGV[at], tonumber(ARGV[count + at]), nil
  if text ~= read then
    read = text
    duration, limit, cost = string.match(text, '^(%d+) (%d+) (%d+)$')
    if duration then duration, limit, cost = tonumber(duration), tonumber(limit), tonumber(cost) end
  end
  local keys = duration and 1 or tonumber(string.match(text, '^%d+'))
  if not keys or first + keys > #KEYS then return redis.error_reply('ERR a text names more keys than there are') end
  if duration then reply = consume_plain(KEYS[first + 1], deadline, duration, limit, cost) end
  if not reply then
    consume = consume or any()
    if duration then text = '1 1 0 - - ' .. ARGV[at]:gsub(' ', ' 1 ', 1) .. ' ' end
    local decided
    decided, reply = pcall(consume, first, keys, text, deadline)
    if not decided then reply = 'null' end
  end
  replies[at] = reply
  first = first + keys
end
if count == 1 then return '[' .. replies[1] .. ']' end
return '[' .. table.concat(replies, ',') .. ']'
`,
);

/**
 * For a cluster, after another slot has refused: gives back the units consumed here, but only within the window in which they were
 * consumed, so that a late call cannot lower another window's count. KEYS: the counter. ARGV: the window, the cost.
 */
export const GIVE_BACK = defineScript(
  { keys: 1, args: 2 },
  `${SHARED_LUA}
local stored = read_hash(KEYS[1], 'window', 'current')
local window, current = whole(stored[1]), whole(stored[2])
if current and window == tonumber(ARGV[1]) then
  local left = math.max(0, current - tonumber(ARGV[2]))
  redis.call('HINCRBY', KEYS[1], 'current', string.format('%.0f', left - current))
  return 1
end
return 0
`,
);

/**
 * For a cluster: spends only the credits. KEYS: the credits. ARGV: the cost, the deadline. Reply, by `exact`: status (4 after the deadline)
 * and the remaining credits.
 */
export const SPEND_CREDITS = defineScript(
  { keys: 1, args: 2 },
  `${SHARED_LUA}${SPEND}
if now_ms() >= tonumber(ARGV[2]) then return exact({4, -1}) end
local status, remaining = spend(KEYS[1], tonumber(ARGV[1]))
return exact({status, remaining})
`,
);

/**
 * Adds the units that a process admitted locally and returns the totals of all processes. An amount for the previous window is still added
 * to that window; older amounts are ignored. KEYS: the counters. ARGV: for each its duration, the window of the amount, the amount. Reply,
 * by `exact`: now, and for each counter the window, current and previous afterwards.
 */
export const SYNC_COUNTS = defineScript(
  { keys: SYNC_KEYS_MAX, argsPerKey: 3 },
  `${READ_COUNTER}
local now = now_ms()
local reply = {now}
for i = 1, #KEYS do
  local duration = tonumber(ARGV[3 * i - 2])
  local of, amount = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local window, current, previous, _, is_current = read_counter(KEYS[i], duration, now)
  if amount ~= 0 and of >= window - 1 then
    -- A process whose clock is ahead has counted in a window that has not begun here. Negative: it took something back.
    -- Of what all processes together admitted beyond 2^53 − 1, no more can be told.
    local function more(count) return math.min(9007199254740991, math.max(0, count + amount)) - count end
    local current_more, previous_more = of >= window and more(current) or 0, of < window and more(previous) or 0
    write_counter(KEYS[i], duration, window, is_current, current, current_more, previous, previous_more)
    current, previous = current + current_more, previous + previous_more
  end
  local at = 3 * i - 1
  reply[at], reply[at + 1], reply[at + 2] = window, current, previous
end
return exact(reply)
`,
);
