-- KEYS: lock ...
-- ARGV: not_before_ms, not_after_ms, then for each lock, in the order of its keys: mark ("nonce|"), ttl_ms (0: check only; below 0: at most so
-- long from now), how many keys; id of the call
-- Lengthens the keys that carry their mark, or shortens them where ttl_ms is below 0; never makes one. Answers, behind the id, {one character a key: 1 ours, 0 gone,
-- - somebody else's; the shortest time left among ours where ttl_ms is 0}; {'late'}: it ran outside of its window.
local call, find = redis.call, string.find
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if now < tonumber(ARGV[1]) or now > tonumber(ARGV[2]) then return {ARGV[#ARGV], 'late'} end

local has_gt = redis.REDIS_VERSION_NUM ~= nil -- both came with Redis 7.0
local function lengthen(key, ttl)
  if has_gt and call('PEXPIRE', key, ttl, 'GT') == 1 then return end
  if call('PTTL', key) < ttl then call('PEXPIRE', key, ttl) end -- also one whose end somebody has taken away
end

-- Changes nothing, but is a write: a demoted primary must say READONLY, not what it last knew. The second is for servers before 7.0.
local function touch(key)
  if redis.REDIS_VERSION_NUM then return call('PEXPIRE', key, 1, 'GT') and nil end
  local refusal = redis.pcall('HDEL', key, '!')
  return type(refusal) == 'table' and not find(refusal.err, 'WRONGTYPE', 1, true) and refusal or nil
end

local held, answer, least, i, is_written = call('MGET', unpack(KEYS)), {}, -1, 1, false
for a = 3, #ARGV - 1, 3 do
  local mark, ttl = ARGV[a], tonumber(ARGV[a + 1])
  for _ = 1, tonumber(ARGV[a + 2]) do
    if held[i] and find(held[i], mark, 1, true) == 1 then
      answer[i] = '1'
      if ttl > 0 then
        lengthen(KEYS[i], ttl)
        is_written = true
      elseif ttl < 0 then
        local left = call('PTTL', KEYS[i])
        call('PEXPIRE', KEYS[i], left >= 0 and math.min(left, -ttl) or -ttl)
        is_written = true
      else
        local left = call('PTTL', KEYS[i])
        if left >= 0 and (least < 0 or left < least) then least = left end
      end
    else
      answer[i] = held[i] and '-' or '0'
    end
    i = i + 1
  end
end
local refusal = not is_written and touch(KEYS[1])
return refusal or {ARGV[#ARGV], table.concat(answer), least}
