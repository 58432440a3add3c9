-- Hook of apache.conf: requests a decision from the gate.

local http = require "socket.http"

local GATE = "http://127.0.0.1:8002/authorize"
local APP = "http://127.0.0.1:3000"
http.TIMEOUT = 1

-- Headers of the connection to the gate, and headers that only this file sets.
local NOT_TOLD = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true,
    ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
}
-- Credential headers of the policy, which the app must not get.
local CREDENTIALS = { "Authorization", "X-API-Key" }
local FOR_CLIENT = { "WWW-Authenticate", "Retry-After", "X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy" }

-- X-Postern-Key-Id, and spellings that some servers treat as equal.
local function is_identity(name)
    return name:match("^x[^%w]postern$") ~= nil or name:match("^x[^%w]postern[^%w]") ~= nil
end

function authorize(r)
    local told = {}
    for name, value in pairs(r:headers_in_table()) do
        local text = type(value) == "table" and table.concat(value, ", ") or value
        -- A client that names these headers in Connection would make mod_proxy remove them from the app's request.
        if name:lower() == "connection" and text:lower():find("postern", 1, true) then return 400 end
        if not NOT_TOLD[name:lower()] then told[name:lower()] = text end
    end
    local before = told["x-forwarded-for"]
    told["x-forwarded-for"] = (before and before .. ", " or "") .. r.useragent_ip
    told["x-original-method"] = r.method
    told["x-original-uri"] = r.unparsed_uri

    local answered, status, headers = http.request { url = GATE, headers = told, redirect = false }
    -- Rejects requests without a response of the gate.
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
    -- The checked path and query, without a key in the query; this note prevents further changes.
    r.notes["proxy-nocanon"] = "1"
    r.filename = "proxy:" .. APP .. headers["x-postern-target"]
    return apache2.OK
end
