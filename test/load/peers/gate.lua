--[[
What a user of nginx would write to verify keys and count one strict limit in Redis: the key's record and both windows are read,
decided and counted by one script, so a request costs one round trip. The record is a hash below the SHA-256 of the key.
]]
local ffi = require("ffi")
local redis = require("nginx.redis")
redis.add_commands("evalsha")

-- libcrypto is what nginx itself is linked with.
ffi.cdef("unsigned char *SHA256(const unsigned char *data, size_t length, unsigned char *digest);")
local digest = ffi.new("unsigned char[32]")

-- Reads the key's record, so what is counted follows from it: a cluster would want the keys named, one Redis does not.
-- KEYS: the record. ARGV: now, Unix ms.
-- Reply: the key's id, its limit, what remains (-1: refused) and the milliseconds to the end of the window; nil for an unknown key.
local SCRIPT = [[
local record = redis.call('HMGET', KEYS[1], 'id', 'enabled', 'limit', 'duration')
if not record[1] or record[2] ~= '1' then return false end
local limit, duration, now = tonumber(record[3]), tonumber(record[4]), tonumber(ARGV[1])
local window = math.floor(now / duration)
local counter = 'limit:' .. record[1] .. ':'
local current = tonumber(redis.call('GET', counter .. string.format('%.0f', window))) or 0
local previous = tonumber(redis.call('GET', counter .. string.format('%.0f', window - 1))) or 0
local used = current + math.floor(previous * (1 - now % duration / duration))
local resets = duration - now % duration
if used >= limit then return {record[1], record[3], -1, resets} end
local counted = redis.call('INCR', counter .. string.format('%.0f', window))
if counted == 1 then redis.call('PEXPIRE', counter .. string.format('%.0f', window), 2 * duration) end
return {record[1], record[3], limit - used - 1, resets}
]]
local sha

local gate = {}

function gate.open(host, port)
  gate.host, gate.port = host, port
end

local function run(connection, key)
  local now = ngx.now() * 1000
  if sha then
    local reply, failure = connection:evalsha(sha, 1, key, now)
    if reply or failure == nil or not string.find(failure, "NOSCRIPT", 1, true) then return reply, failure end
  end
  sha = ngx.sha1_bin(SCRIPT):gsub(".", function(byte) return string.format("%02x", string.byte(byte)) end)
  return connection:eval(SCRIPT, 1, key, now)
end

function gate.check()
  local secret = string.match(ngx.var.http_authorization or "", "^Bearer (%S+)$")
  if not secret then return ngx.exit(401) end
  local connection = redis:new()
  connection:set_timeout(1000)
  local connected = connection:connect(gate.host, gate.port)
  if not connected then return ngx.exit(503) end
  ffi.C.SHA256(secret, #secret, digest)
  local reply, failure = run(connection, "key:" .. ngx.encode_base64(ffi.string(digest, 32)))
  if failure then return ngx.exit(503) end
  connection:set_keepalive(60000, 64)
  if not reply or reply == ngx.null then return ngx.exit(401) end
  local id, limit, remaining, resets = reply[1], reply[2], reply[3], reply[4]
  ngx.header["RateLimit-Limit"] = limit
  ngx.header["RateLimit-Remaining"] = math.max(0, remaining)
  ngx.header["RateLimit-Reset"] = math.ceil(resets / 1000)
  if remaining < 0 then return ngx.exit(429) end
  ngx.req.set_header("X-Key-Id", id)
end

return gate
