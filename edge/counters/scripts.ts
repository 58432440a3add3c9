import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript } from "../redis/script.ts";

/*
 * The arithmetic of core/ratelimits/window.ts, written in Lua so that reading, deciding and counting are one atomic step for all
 * processes. Lua's numbers are doubles too. Stored numbers are written with %.0f, because Lua prints 10^15 as 1e+15. The clock
 * is the store's. The replies contain the counts from before; the caller makes the outcomes with the functions of core.
 */

/**
 * Returns window, current, previous and the time to use: if the clock is behind the stored window, the start of that window. Counts
 * that are not whole numbers, or that belong to a window that no clock can reach, were not written by us and are ignored.
 */
const READ_COUNTER = `${SHARED_LUA}
local function read_counter(key, duration, now)
  local seq = math.floor(now / duration)
  local stored = read_hash(key, 'window', 'current', 'previous')
  local window, current, previous = whole(stored[1]), whole(stored[2]), whole(stored[3])
  if not (window and current and previous and whole((window + 2) * duration)) then return seq, 0, 0, now end
  if window > seq then return window, current, previous, window * duration end
  if window == seq then return window, current, previous, now end
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
local function write_counter(key, duration, window, current, previous)
  redis.call('HSET', key, 'window', string.format('%.0f', window), 'current', string.format('%.0f', current),
    'previous', string.format('%.0f', previous))
  redis.call('PEXPIRE', key, string.format('%.0f', 2 * duration))
end
`;

/**
 * Spends from one counter of credits. Returns status (1 spent, 2 refused, 3 not loaded or closed) and what remains. A counter that
 * does not hold whole numbers counts as not loaded; the loader replaces it. Needs SHARED_LUA.
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
  if cost > 0 then redis.call('HSET', key, 'spent', string.format('%.0f', spent + cost)) end
  return 1, granted - spent - cost
end
`;

/**
 * Decides all limits and the credits of one request, atomically.
 * KEYS: the C counters; then, if credits are spent: the credits, the set of dirty ones, the set of those to be loaded.
 * ARGV: C, '1' to decide without consuming, the cost in credits or '', the key's id, C durations, for each charge
 *       the number of its counter, its limit and its cost, and the deadline. From the deadline on the caller no longer waits,
 *       so nothing must be consumed.
 * Reply, by `exact`: now, 1 if all limits passed, and for each counter the window, current and previous from before; with credits
 *        also their status (0: a limit refused first) and what remains (-1: unknown). After the deadline: now, -1.
 */
const CONSUME_ONE = `${READ_COUNTER}${SPEND}
local function consume(KEYS, ARGV)
  local counters = tonumber(ARGV[1])
  local now = now_ms()
  if now >= tonumber(ARGV[#ARGV]) then return {now, -1} end
  local reply = {now, 1}
  local durations, windows, currents, previouses, moments, costs = {}, {}, {}, {}, {}, {}
  for i = 1, counters do
    local duration = tonumber(ARGV[4 + i])
    durations[i], costs[i] = duration, 0
    windows[i], currents[i], previouses[i], moments[i] = read_counter(KEYS[i], duration, now)
    local at = 3 * i
    reply[at], reply[at + 1], reply[at + 2] = windows[i], currents[i], previouses[i]
  end
  local passed = true
  for a = 5 + counters, #ARGV - 1, 3 do
    local i, limit, cost = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
    local effective = used(windows[i], currents[i] + costs[i], previouses[i], durations[i], moments[i]) + cost
    if limit <= 0 or effective > limit then
      passed = false
      break
    end
    costs[i] = costs[i] + cost
  end
  if passed and ARGV[2] ~= '1' then
    for i = 1, counters do
      if costs[i] > 0 then
        write_counter(KEYS[i], durations[i], windows[i], currents[i] + costs[i], previouses[i])
      end
    end
  end
  if not passed then reply[2] = 0 end
  if ARGV[3] ~= '' then
    local status, remaining = 0, -1
    if passed then
      status, remaining = spend(KEYS[counters + 1], tonumber(ARGV[3]))
      if status == 1 and tonumber(ARGV[3]) > 0 then add_to_set(KEYS[counters + 2], ARGV[4]) end
      if status == 3 then add_to_set(KEYS[counters + 3], ARGV[4]) end
    else
      local granted, spent = open_credits(KEYS[counters + 1])
      if granted then remaining = math.max(0, granted - spent) end
    end
    reply[#reply + 1] = status
    reply[#reply + 1] = remaining
  end
  return reply
end
`;

export const CONSUME = defineScript(`${CONSUME_ONE}
return exact(consume(KEYS, ARGV))
`);

/**
 * Several requests, one after the other, each as by CONSUME. One command for all, because a command costs client and server more
 * than the work in it. A request that fails does not affect the others.
 * KEYS: those of all requests. ARGV: one text per request, because an argument costs the client more than a number in a text:
 *       the number of its keys and then its arguments, each followed by a space.
 * Reply: one text, a JSON array with CONSUME's reply for each request, or null for one that failed.
 */
export const CONSUME_MANY = defineScript(`${CONSUME_ONE}
local replies, key = {}, 0
for at = 1, #ARGV do
  local keys, args, key_count = {}, {}, nil
  for arg in string.gmatch(ARGV[at], '([^ ]*) ') do
    if key_count then args[#args + 1] = arg else key_count = tonumber(arg) end
  end
  for i = 1, key_count do keys[i] = KEYS[key + i] end
  key = key + key_count
  local decided, reply = pcall(consume, keys, args)
  replies[#replies + 1] = decided and exact(reply) or 'null'
end
return '[' .. table.concat(replies, ',') .. ']'
`);

/**
 * For a cluster, when another slot has refused: takes back what was consumed here, but only from the window in which it was
 * consumed, so that a late call cannot lower a count that it never raised.
 * KEYS: the counter. ARGV: the window, the cost.
 */
export const GIVE_BACK = defineScript(`${SHARED_LUA}
local stored = read_hash(KEYS[1], 'window', 'current')
local window, current = whole(stored[1]), whole(stored[2])
if current and window == tonumber(ARGV[1]) then
  local left = math.max(0, current - tonumber(ARGV[2]))
  redis.call('HSET', KEYS[1], 'current', string.format('%.0f', left))
  return 1
end
return 0
`);

/**
 * For a cluster: spends only the credits. KEYS: the credits. ARGV: the cost, the deadline.
 * Reply, by `exact`: status (4 after the deadline) and what remains.
 */
export const SPEND_CREDITS = defineScript(`${SHARED_LUA}${SPEND}
if now_ms() >= tonumber(ARGV[2]) then return exact({4, -1}) end
local status, remaining = spend(KEYS[1], tonumber(ARGV[1]))
return exact({status, remaining})
`);

/**
 * Adds what a process admitted by itself and returns the totals of all processes. An amount for the window before the current one is
 * still added to that window; older amounts are ignored.
 * KEYS: the counters. ARGV: for each its duration, the window of the amount, the amount.
 * Reply, by `exact`: now, and for each counter the window, current and previous afterwards.
 */
export const SYNC_COUNTS = defineScript(`${READ_COUNTER}
local now = now_ms()
local reply = {now}
for i = 1, #KEYS do
  local duration = tonumber(ARGV[3 * i - 2])
  local of, amount = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local window, current, previous = read_counter(KEYS[i], duration, now)
  if amount ~= 0 and of >= window - 1 then
    -- A process whose clock is ahead has counted in a window that has not begun here. Negative: it took something back.
    -- Of what all processes together admitted beyond 2^53 − 1, no more can be told.
    local function plus(count) return math.min(9007199254740991, math.max(0, count + amount)) end
    if of >= window then current = plus(current) else previous = plus(previous) end
    write_counter(KEYS[i], duration, window, current, previous)
  end
  local at = 3 * i - 1
  reply[at], reply[at + 1], reply[at + 2] = window, current, previous
end
return exact(reply)
`);
