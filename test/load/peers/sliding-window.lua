-- The least that a sliding window in Redis can do, trusting the caller's clock: no deadline, no credits, one limit, and what is stored
-- is believed.
-- KEYS: the count of this window, that of the one before. ARGV: the limit, the window's length and what has passed of it, ms; the cost.
-- Reply: what remains, or -1 if it was refused.
local current = tonumber(redis.call('GET', KEYS[1])) or 0
local previous = tonumber(redis.call('GET', KEYS[2])) or 0
local limit, duration, passed, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local used = current + math.floor(previous * (1 - passed / duration))
if used + cost > limit then return -1 end
local counted = redis.call('INCRBY', KEYS[1], ARGV[4])
if counted == cost then redis.call('PEXPIRE', KEYS[1], 2 * duration) end
return limit - used - cost
