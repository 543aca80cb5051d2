-- Requests of wrk: each thread is one client and walks its part of a list of fixed-length records.
-- Called by `forerun-bed servers media` with: list, bytes a record, records, clients.
--
-- A client asks again as soon as it was answered, so the time of an answer is that between two calls
-- of `request`. wrk's own percentiles are of another load: it adds answers that a client at a steady
-- rate would have waited for.

local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds, nanoseconds; } moment; int clock_gettime(int, moment *);")
local CLOCK_MONOTONIC = 1

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
  now = ffi.new("moment")
  times = {}
  -- wrk parses a request of the first thread, and does not send it.
  is_sent = client > 0
end

function request()
  if not is_sent then
    is_sent = true
    return wrk.format("GET", "/")
  end
  ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
  local asked = tonumber(now.seconds) * 1e6 + tonumber(now.nanoseconds) / 1e3
  if before then
    times[#times + 1] = asked - before
  end
  before = asked
  list:seek("set", position % count * record)
  position = position + 1
  return wrk.format("GET", (string.match(list:read(record), "%S+")))
end

function done(summary)
  local fewest, all = math.huge, {}
  for _, thread in ipairs(threads) do
    local own = thread:get("times")
    fewest = math.min(fewest, #own)
    for _, time in ipairs(own) do
      all[#all + 1] = time
    end
  end
  table.sort(all)
  local function percentile(share)
    return all[math.min(#all, math.floor(#all * share) + 1)] or 0
  end
  local errors = summary.errors
  io.write(string.format(
    "\nanswers requests=%d duration_us=%d p50_us=%d p99_us=%d slowest_per_mean=%.4f errors=%d\n",
    summary.requests, summary.duration, percentile(0.50), percentile(0.99),
    #all > 0 and fewest * #threads / #all or 0,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
