/*
 * Lua functions that scripts share. A workspace's own Redis user can write any type and any bytes under the workspace's prefix. A script
 * call may serve several workspaces, so it must not fail because of one workspace's data.
 */

/**
 * `whole(text)`: the integer from 0 to 2^53 − 1 in the text, else nil.
 * `read_hash(key, ...)`: fields of a hash; false for each missing field. Deletes a key that is not a hash.
 * `add_to_set(key, member)`: adds to a set, and replaces a key that is not a set. Returns 1 if the member is new.
 * `exact(numbers)`: integers as one text, a JSON array. The client misreads integer replies beyond 2^53 − 8, and is slow with thousands of
 * small replies.
 * `now_ms()`: Redis time, Unix ms, rounded down.
 */
export const SHARED_LUA = `
local function whole(text)
  local number = tonumber(text)
  if number and number >= 0 and number <= 9007199254740991 and number % 1 == 0 then return number end
  return nil
end
local function is_wrong_type(reply)
  if type(reply) ~= 'table' or not reply.err then return false end
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then error(reply.err) end
  return true
end
local function read_hash(key, ...)
  local fields = redis.pcall('HMGET', key, ...)
  if not is_wrong_type(fields) then return fields end
  redis.call('UNLINK', key)
  return {false, false, false}
end
local function add_to_set(key, member)
  local added = redis.pcall('SADD', key, member)
  if not is_wrong_type(added) then return added end
  redis.call('UNLINK', key)
  return redis.call('SADD', key, member)
end
local formats = {}
local function exact(numbers)
  local count = #numbers
  formats[count] = formats[count] or '[' .. string.rep('%.0f,', count - 1) .. '%.0f]'
  return string.format(formats[count], unpack(numbers))
end
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
`;
