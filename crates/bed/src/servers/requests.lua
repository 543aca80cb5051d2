-- Requests of wrk: each thread is one client and walks its part of a list of fixed-length records.
-- Called by `forerun-bed servers media` with: list, bytes a record, records, clients.

local threads = {}

function setup(thread)
  thread:set("client", #threads)
  table.insert(threads, thread)
end

function init(arguments)
  list = assert(io.open(arguments[1], "rb"))
  record = tonumber(arguments[2])
  count = tonumber(arguments[3])
  position = math.floor(client * count / tonumber(arguments[4]))
  issued = 0
end

function request()
  list:seek("set", position % count * record)
  position = position + 1
  issued = issued + 1
  return wrk.format("GET", (string.match(list:read(record), "%S+")))
end

function done(summary, latency)
  local fewest, total = math.huge, 0
  for _, thread in ipairs(threads) do
    -- One is under way.
    local own = math.max(0, thread:get("issued") - 1)
    fewest = math.min(fewest, own)
    total = total + own
  end
  local errors = summary.errors
  io.write(string.format(
    "\nanswers requests=%d duration_us=%d p50_us=%d p99_us=%d slowest_per_mean=%.4f errors=%d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    total > 0 and fewest * #threads / total or 0,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
