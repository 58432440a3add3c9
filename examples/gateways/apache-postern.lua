-- The hook of apache.conf: asks the gate whether the request may pass.

local http = require "socket.http"

local GATE = "http://127.0.0.1:8002/authorize"
local APP = "http://127.0.0.1:3000"
http.TIMEOUT = 1

-- Of the connection to the gate, not of the request; and what only this file says of the request.
local NOT_TOLD = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["keep-alive"] = true,
    ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
}
-- The headers in which the policy looks for keys: the app must not get them.
local CREDENTIALS = { "Authorization", "X-API-Key" }
local FOR_CLIENT = { "WWW-Authenticate", "Retry-After", "X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset" }

-- X-Postern-Key-Id, and spellings that some servers take for it.
local function is_identity(name)
    return name:match("^x[^%w]postern$") ~= nil or name:match("^x[^%w]postern[^%w]") ~= nil
end

function authorize(r)
    local told = {}
    for name, value in pairs(r:headers_in_table()) do
        local text = type(value) == "table" and table.concat(value, ", ") or value
        -- A client that names these headers as those of its connection would have mod_proxy take them from the app's request again.
        if name:lower() == "connection" and text:lower():find("postern", 1, true) then return 400 end
        if not NOT_TOLD[name:lower()] then told[name:lower()] = text end
    end
    local before = told["x-forwarded-for"]
    told["x-forwarded-for"] = (before and before .. ", " or "") .. r.useragent_ip
    told["x-original-method"] = r.method
    told["x-original-uri"] = r.unparsed_uri

    local answered, status, headers = http.request { url = GATE, headers = told, redirect = false }
    -- Without an answer nothing passes.
    if not answered or type(status) ~= "number" then return 503 end
    for _, name in ipairs(FOR_CLIENT) do
        local value = headers[name:lower()]
        if value then r.err_headers_out[name] = value end
    end
    if status ~= 200 then return status >= 400 and status < 600 and status or 503 end

    for name in pairs(r:headers_in_table()) do
        if is_identity(name:lower()) then r.headers_in[name] = nil end
    end
    for _, name in ipairs(CREDENTIALS) do r.headers_in[name] = nil end
    for name, value in pairs(headers) do
        if is_identity(name) and name ~= "x-postern-target" then r.headers_in[name] = value end
    end
    -- The path and query that were checked, without a key in the query; with this note they stay as they are.
    r.notes["proxy-nocanon"] = "1"
    r.filename = "proxy:" .. APP .. headers["x-postern-target"]
    return apache2.OK
end
