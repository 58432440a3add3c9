-- Action `lua.postern` of haproxy.cfg: requests a decision from the gate with HAProxy's HTTP client.

local GATE = "http://127.0.0.1:8002/authorize"
local TIMEOUT_MS = 1000

-- Headers of the connection to the gate, and headers that only this file sets.
local NOT_TOLD = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true,
    ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
}

-- X-Postern-Key-Id, and spellings that some servers treat as equal.
local function is_identity(name)
    return name:match("^x[^%w]postern$") ~= nil or name:match("^x[^%w]postern[^%w]") ~= nil
end

local function question(txn)
    local told = {}
    local forwarded_for = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        local list = {}
        -- HAProxy indexes values from 0.
        for at = 0, #values do list[#list + 1] = values[at] end
        if name == "x-forwarded-for" then forwarded_for = list
        elseif not NOT_TOLD[name] then told[name] = list end
    end
    forwarded_for[#forwarded_for + 1] = txn.sf:src()
    told["x-forwarded-for"] = { table.concat(forwarded_for, ", ") }
    told["x-original-method"] = { txn.sf:method() }
    told["x-original-uri"] = { txn.sf:url() }
    return told
end

local function first(response, name)
    local values = response.headers[name]
    return values and values[0]
end

local function refuse(txn, response)
    local status = response and response.status or 0
    local reply = txn:reply()
    if status >= 400 and status < 600 then
        reply:set_status(status)
        for _, name in ipairs({ "content-type", "www-authenticate", "retry-after", "x-request-id",
                                "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy" }) do
            local value = first(response, name)
            if value then reply:add_header(name, value) end
        end
        reply:set_body(response.body or "")
    else
        -- Rejects requests without a response of the gate.
        reply:set_status(503)
        reply:add_header("retry-after", "1")
    end
    txn:done(reply)
end

core.register_action("postern", { "http-req" }, function(txn)
    local response = core.httpclient():get({ url = GATE, headers = question(txn), timeout = TIMEOUT_MS })
    if not response or response.status ~= 200 then return refuse(txn, response) end

    for name in pairs(txn.http:req_get_headers()) do
        if is_identity(name) then txn.http:req_del_header(name) end
    end
    for name, values in pairs(response.headers) do
        if is_identity(name) and name ~= "x-postern-target" then txn.http:req_set_header(name, values[0]) end
    end
    txn.http:req_set_uri(first(response, "x-postern-target"))
    for _, name in ipairs({ "limit", "remaining", "reset", "policy" }) do
        local value = first(response, "ratelimit-" .. name)
        if value then txn:set_var("txn.postern_" .. name, value) end
    end
end)
