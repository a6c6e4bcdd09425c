-- KEYS: lock ...  ARGV: not_before_ms, not_after_ms, then for each tenure, in the order of its keys: mark ("nonce|"), ttl_ms, how many keys
-- Lengthens keys that carry the mark of their tenure, never shortens, never makes one. Answers one character a key:
-- 1 ours, 0 gone, - somebody else's; or 'late' when it runs after not_after_ms: nobody waits for it any more; or before
-- not_before_ms: the clock went back, and not_after_ms means nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(ARGV[1]) or now > tonumber(ARGV[2]) then return 'late' end

local call, find, has_gt = redis.call, string.find, redis.REDIS_VERSION_NUM ~= nil -- both came with Redis 7.0
local function lengthen(key, ttl)
  if has_gt and call('PEXPIRE', key, ttl, 'GT') == 1 then return end
  if call('PTTL', key) < ttl then call('PEXPIRE', key, ttl) end -- also one whose end somebody has taken away
end

local held, answer, i = call('MGET', unpack(KEYS)), {}, 1
for a = 3, #ARGV, 3 do
  local mark, ttl = ARGV[a], tonumber(ARGV[a + 1])
  for _ = 1, tonumber(ARGV[a + 2]) do
    if held[i] and find(held[i], mark, 1, true) == 1 then
      lengthen(KEYS[i], ttl)
      answer[i] = '1'
    else
      answer[i] = held[i] and '-' or '0'
    end
    i = i + 1
  end
end
return table.concat(answer)
