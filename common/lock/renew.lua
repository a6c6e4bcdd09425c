-- KEYS: lock ...  ARGV: not_before_ms, not_after_ms, then for each tenure, in the order of its keys: mark ("nonce|"), ttl_ms, how many keys
-- Lengthens keys that carry the mark of their tenure, never shortens, never makes one. Answers one character a key:
-- 1 ours, 0 gone, - somebody else's; or 'late' when it runs after not_after_ms: nobody waits for it any more; or before
-- not_before_ms: the clock went back, and not_after_ms means nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(ARGV[1]) or now > tonumber(ARGV[2]) then return 'late' end

local held, answer, i = redis.call('MGET', unpack(KEYS)), {}, 1
for a = 3, #ARGV, 3 do
  local mark, ttl = ARGV[a], tonumber(ARGV[a + 1])
  for _ = 1, tonumber(ARGV[a + 2]) do
    if held[i] and string.sub(held[i], 1, #mark) == mark then
      if redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
      answer[i] = '1'
    else
      answer[i] = held[i] and '-' or '0'
    end
    i = i + 1
  end
end
return table.concat(answer)
